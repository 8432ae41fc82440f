import { expect, test } from "vitest";

import { readSasUrl } from "../src/protocol/sas_url";

const SERVICES = [{ name: "blob", port: 10000 }, { name: "queue", port: 10001 }];
const TOKEN = "sv=2025-11-05&sig=abc%2Bdef%3D";

test.each([
  ["http://127.0.0.1:10000/acc/c/a%20b", "blob", "acc", "/c/a%20b"],
  ["http://127.0.0.1:10001/acc", "queue", "acc", ""],
  ["https://acc.blob.example.net/c", "blob", "acc", "/c"],
  ["http://acc.queue.localhost:9/q", "queue", "acc", "/q"],
  ["http://127.0.0.1:9/table/acc/t", "table", "acc", "/t"],
])("%s is read", (url, service, account, path) => {
  expect(readSasUrl(` ${url}?${TOKEN} `, SERVICES)).toEqual({ kind: "sas", service, account, path, token: TOKEN });
});

test.each([
  ["nothing", "not_a_url"],
  [`javascript:alert(1)?${TOKEN}`, "not_a_url"],
  ["http://127.0.0.1:10000/acc?sv=1", "no_signature"],
  [`http://127.0.0.1:9/acc?${TOKEN}`, "no_service"],
  [`http://127.0.0.1:10000/?${TOKEN}`, "no_account"],
])("%s is none, and the page says why", (url, problem) => {
  expect(readSasUrl(url, SERVICES)).toBe(problem);
});
