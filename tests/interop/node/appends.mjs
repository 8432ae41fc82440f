// Append blobs: created, appended to under conditions, sealed, copied.

import { container, status, step, text } from "./steps.mjs";

const client = await container("appends");
const blob = client.getAppendBlobClient("log");

await step("create", async () => status(await blob.createIfNotExists({ metadata: { a: "1" } })));
await step("create again", async () => (await blob.createIfNotExists()).succeeded);
await step("append", async () => {
  const answer = await blob.appendBlock("first", 5);
  return [status(answer), answer.blobAppendOffset, answer.blobCommittedBlockCount];
});
await step("append at the end", async () => {
  const conditions = { appendPosition: 5, maxSize: 11 };
  const answer = await blob.appendBlock("second", 6, { conditions });
  return [answer.blobAppendOffset, answer.blobCommittedBlockCount];
});
await step("append elsewhere", () =>
  blob.appendBlock("x", 1, { conditions: { appendPosition: 5 } }));
await step("append too much", () => blob.appendBlock("x", 1, { conditions: { maxSize: 11 } }));
await step("read", async () => {
  const answer = await blob.download();
  return [await text(answer), answer.blobType, answer.blobCommittedBlockCount];
});
await step("seal", async () => {
  const answer = await blob.seal({ conditions: { appendPosition: 11 } });
  return [status(answer), answer.isSealed];
});
await step("append to a sealed one", () => blob.appendBlock("x", 1));
await step("properties", async () => {
  const { blobType, blobCommittedBlockCount, isSealed } = await blob.getProperties();
  return { blobType, blobCommittedBlockCount, isSealed };
});
await step("copy", async () => {
  const copy = client.getAppendBlobClient("copy");
  await (await copy.beginCopyFromURL(blob.url, { sealBlob: false })).pollUntilDone();
  const answer = await copy.appendBlock("third", 5);
  return [answer.blobAppendOffset, answer.blobCommittedBlockCount, await text(await copy.download())];
});
await step("list", async () => {
  const found = [];
  for await (const one of client.listBlobsFlat()) found.push([one.name, one.properties.blobType]);
  return found;
});
