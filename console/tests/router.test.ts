import { beforeEach, expect, test } from "vitest";

import { address, addressOf, navigate, readAddress, startRouter } from "../src/state/router";

const HOSTILE = ["a b", "a/b", "..", "100%", "<img src=x>", "é", "?x=1#y", "a'b", '"q"'];

beforeEach(() => { history.replaceState(null, "", "/"); });

test.each(HOSTILE)("a name %j comes back from its address", (name) => {
  const text = addressOf("blobs", ["devstoreaccount1", name]);
  const [path = "", search = ""] = text.split("?");
  expect(readAddress(path, search)).toEqual({ view: "blobs", names: ["devstoreaccount1", name], query: {} });
});

test("an address may have a query, and leaves out what is empty", () => {
  expect(addressOf("requests", ["7"], { filter: "a&b", other: "" })).toBe("/requests/7?filter=a%26b");
});

test("what is no encoding is taken as it is", () => {
  expect(readAddress("/blobs/100%", "").names).toEqual(["100%"]);
});

test("a click on a link of the page shows its address without a reload", () => {
  startRouter();
  const link = document.createElement("a");
  link.href = "/requests/7";
  document.body.append(link);
  link.click();
  expect(address.value).toEqual({ view: "requests", names: ["7"], query: {} });
});

test("going to an address changes what is shown", () => {
  navigate("/overview");
  expect(address.value.view).toBe("overview");
  expect(location.pathname).toBe("/overview");
});
