// Queues: messages from put to delete, receipts, visibility, metadata, policies, limits.

import { QueueServiceClient } from "@azure/storage-queue";
import { status, step } from "./steps.mjs";

const service = QueueServiceClient.fromConnectionString(process.argv[2], { retryOptions: { maxTries: 1 } });
const queue = service.getQueueClient("work");
const YEAR_9999 = new Date("9999-12-31T23:59:59Z").toISOString();

await step("create", async () => status(await queue.create({ metadata: { owner: "ann" } })));
await step("create again, the same", async () => status(await queue.create({ metadata: { owner: "ann" } })));
await step("create again, another", () => queue.create({ metadata: { owner: "bob" } }));
await step("exists", async () => [await queue.exists(), await service.getQueueClient("none").exists()]);
await step("bad name", () => service.createQueue("a--b"));
await step("list", async () => {
  const found = [];
  for await (const one of service.listQueues({ includeMetadata: true, prefix: "wo" })) found.push([one.name, one.metadata]);
  return found;
});

const texts = ["first <&> \u{1F600}", " spaces ", ""];
await step("send", async () => {
  const statuses = [];
  for (const text of texts) statuses.push(status(await queue.sendMessage(text)));
  return statuses;
});
await step("peek", async () =>
  (await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems.map((one) => [one.messageText, one.dequeueCount]));
await step("count", async () => (await queue.getProperties()).approximateMessagesCount);
let held, receipt;
await step("receive", async () => {
  ({ receivedMessageItems: [held] } = await queue.receiveMessages({ visibilityTimeout: 60 }));
  return [held.messageText, held.dequeueCount];
});
await step("hidden now", async () =>
  (await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 60 })).receivedMessageItems.map((one) => one.messageText));
await step("update", async () => {
  const answer = await queue.updateMessage(held.messageId, held.popReceipt, "changed", 0);
  receipt = answer.popReceipt;
  return status(answer);
});
await step("the old receipt is stale", () => queue.deleteMessage(held.messageId, held.popReceipt));
await step("a receipt that is none", () => queue.deleteMessage(held.messageId, "invalid"));
await step("visible again", async () => {
  const { receivedMessageItems: [one] } = await queue.receiveMessages();
  await queue.deleteMessage(one.messageId, one.popReceipt);
  return [one.messageText, one.dequeueCount, one.popReceipt !== receipt];
});
await step("never expires", async () => {
  const { expiresOn } = await queue.sendMessage("kept", { messageTimeToLive: -1 });
  return expiresOn.toISOString() === YEAR_9999;
});
await step("too many at once", () => queue.receiveMessages({ numberOfMessages: 33 }));
await step("too large", () => queue.sendMessage("x".repeat(65_537)));
await step("as large as can be", async () => status(await queue.sendMessage("x".repeat(65_536))));
await step("visibility beyond its life", () => queue.sendMessage("x", { messageTimeToLive: 10, visibilityTimeout: 10 }));
await step("clear", async () => [status(await queue.clearMessages()), (await queue.getProperties()).approximateMessagesCount]);
await step("metadata", async () => {
  await queue.setMetadata({ colour: "blue" });
  return (await queue.getProperties()).metadata;
});
await step("access policy", async () => {
  const expiresOn = new Date("2040-01-02T03:04:05.678Z");
  await queue.setAccessPolicy([{ id: "readers", accessPolicy: { permissions: "rp", expiresOn } }]);
  const { signedIdentifiers: [found] } = await queue.getAccessPolicy();
  return [found.id, found.accessPolicy.permissions, found.accessPolicy.expiresOn.toISOString()];
});
await step("properties", async () => {
  const cors = [{ allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 5 }];
  await service.setProperties({ cors });
  return (await service.getProperties()).cors.length;
});
await step("delete", async () => status(await queue.delete()));
await step("gone", () => queue.sendMessage("x"));
await step("created again at once", async () => {
  await queue.create();
  return (await queue.getProperties()).approximateMessagesCount;
});
