import { afterEach, expect, test, vi } from "vitest";

import type { SasCredential } from "../../src/protocol/credentials";
import { askApi, type DataRequest, dataUrl, send } from "../../src/protocol/requests";

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

const SAS: SasCredential = { kind: "sas", account: "vault", service: "blob", path: "", token: "sig=x" };

afterEach(() => { vi.unstubAllGlobals(); });

/** Catch what is handed to the browser. */
function sent(): RequestInit[] {
  const caught: RequestInit[] = [];
  vi.stubGlobal("fetch", (_: URL, options: RequestInit) => {
    caught.push(options);
    return Promise.resolve(new Response("{}"));
  });
  return caught;
}

test("keeps reads out of the browser's cache, and lets no write carry its header", async () => {
  const caught = sent();
  const ask = (method: DataRequest["method"]): Promise<Response> => send(SAS, { method, service: "blob", account: "vault", path: "/c/b" });
  for (const method of ["GET", "HEAD"] as const) await ask(method);
  await askApi(null, "session");
  expect(caught.map((one) => one.cache)).toEqual(["no-store", "no-store", "no-store"]);
  caught.length = 0;
  for (const method of ["PUT", "POST", "DELETE", "MERGE", "PATCH"] as const) await ask(method);
  // Browsers add Cache-Control for "no-store", "reload" and "no-cache".
  expect(caught.map((one) => one.cache)).toEqual(Array(5).fill("default"));
});
