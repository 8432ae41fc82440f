import { expect, test } from "vitest";

import { authorization, importKey, type Scheme, stringToSign } from "../src/protocol/signing";
import given from "./vectors.json";

function parts(vector: (typeof given.vectors)[number]) {
  const headers = new Map(Object.entries(vector.headers as Record<string, string>));
  return { method: vector.method, url: new URL(vector.url), headers, contentLength: vector.content_length };
}

test.each(given.vectors)("$method $url is signed as the server signs it", async (vector) => {
  const scheme = vector.scheme as Scheme;
  expect(stringToSign(given.account, scheme, parts(vector))).toBe(vector.string_to_sign);
  const signed = await authorization(await importKey(given.key), given.account, scheme, parts(vector));
  expect(signed).toBe(`SharedKey ${given.account}:${vector.signature}`);
});

test("what URL made of an apostrophe is signed, not what was written", () => {
  const url = new URL("http://127.0.0.1/blob/a/c?prefix=it's");
  expect(url.search).toBe("?prefix=it%27s");
  const text = stringToSign("a", "full", { method: "GET", url, headers: new Map(), contentLength: 0 });
  expect(text.endsWith("/a/blob/a/c\nprefix:it's")).toBe(true);
});

test("the key cannot be taken out again", async () => {
  const key = await importKey(given.key);
  expect(key.extractable).toBe(false);
  await expect(crypto.subtle.exportKey("raw", key)).rejects.toThrow();
});

test("what is no key is refused", async () => {
  await expect(importKey("not base64!")).rejects.toThrow();
});
