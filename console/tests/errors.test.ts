import { expect, test } from "vitest";

import { errorOf } from "../src/protocol/errors";

function refusal(body: string, headers: Record<string, string> = {}): Response {
  return new Response(body, { status: 403, headers });
}

test("a refusal of blobs, queues and files is XML", async () => {
  const body =
    '<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code><Message>No.\nRequestId:1\nTime:2</Message>' +
    "<AuthenticationErrorDetail>Why.</AuthenticationErrorDetail></Error>";
  const error = await errorOf(refusal(body, { "x-ms-request-id": "7" }));
  expect([error.status, error.code, error.message, error.requestId]).toEqual([403, "AuthenticationFailed", "No. Why.", "7"]);
});

test("a refusal of tables is JSON", async () => {
  const error = await errorOf(refusal('{"odata.error":{"code":"TableNotFound","message":{"lang":"en","value":"Gone."}}}'));
  expect([error.code, error.message]).toEqual(["TableNotFound", "Gone."]);
});

test("a refusal of the read API says what it needs", async () => {
  const error = await errorOf(refusal('{"error":{"code":"Forbidden","text":"No.","needs":"operator"}}'));
  expect([error.code, error.message, error.needs]).toEqual(["Forbidden", "No.", "operator"]);
});

test("an answer without a body has the code of its header", async () => {
  const error = await errorOf(refusal("", { "x-ms-error-code": "BlobNotFound" }));
  expect([error.code, error.message]).toEqual(["BlobNotFound", "BlobNotFound"]);
});
