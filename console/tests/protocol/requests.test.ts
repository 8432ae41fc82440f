import { expect, test } from "vitest";

import { dataUrl } from "../../src/protocol/requests";

const nobody = { kind: "bearer", token: "" } as const;

function urlOf(account: string, path: string): string {
  const url = dataUrl(nobody, { service: "blob", account, path, query: { comp: "list" } });
  return url.pathname + url.search;
}

test("names stand in the path as they are", () => {
  expect(urlOf("shop", "/c/a%2Fb's%20(1)")).toBe("/blob/shop/c/a%2Fb's%20(1)?comp=list");
});

test.each(["../queue/shop/q/messages#", "../queue/shop/q/messages?a=", "a/b", "a\\..\\b", "a?b", "a#b"])(
  "the account %j of a crafted address leads nowhere else",
  (account) => {
    expect(urlOf(account, "/c")).toBe(`/blob/${encodeURIComponent(account)}/c?comp=list`);
  },
);

test.each([
  ["..", "/c"],
  [".", "/c"],
  ["shop", "/../c"],
  ["shop", "/c/%2e%2E/d"],
  ["shop", "/c/./d"],
  ["shop", "/c\\d"],
])("what a browser would resolve is not sent: %j, %j", (account, path) => {
  expect(() => urlOf(account, path)).toThrow("browsers cannot address");
});
