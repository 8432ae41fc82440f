// Batches: of the service and of a container, signed with a key or with a token.

import {
  BlobServiceClient, ContainerSASPermissions, generateBlobSASQueryParameters, StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { container, credential, service, status, step, without } from "./steps.mjs";

const client = await container("batches");
const other = await container("batches-other");

async function fill(place, ...names) {
  const blobs = names.map((name) => place.getBlockBlobClient(name));
  await Promise.all(blobs.map((blob) => blob.upload("x", 1)));
  return blobs;
}
async function left(place) {
  const found = [];
  for await (const one of place.listBlobsFlat()) found.push(one.name);
  return found;
}
function told(answer) {
  const parts = answer.subResponses.map((one) => [one.status, one.errorCode ?? null]);
  return [status(answer), answer.subResponsesSucceededCount, answer.subResponsesFailedCount, parts];
}
const batch = service.getBlobBatchClient();
const here = client.getBlobBatchClient();

await step("delete", async () => {
  const blobs = await fill(client, "a", "dir/b c", "ü+%", "kept");
  return [told(await batch.deleteBlobs(blobs.slice(0, 3))), await left(client)];
});
await step("delete of two containers", async () => {
  const blobs = [...await fill(client, "a"), ...await fill(other, "a")];
  return [told(await batch.deleteBlobs(blobs)), await left(other)];
});
await step("delete what is not there", async () => {
  const [blob] = await fill(client, "a");
  return told(await batch.deleteBlobs([client.getBlobClient("none"), blob]));
});
await step("delete in the container", async () => told(await here.deleteBlobs(await fill(client, "a", "b"))));
await step("delete of another container", async () => {
  const blobs = await fill(other, "stays");
  return here.deleteBlobs(blobs);
});
await step("it stays", () => left(other));
await step("set tiers", async () => {
  const blobs = await fill(client, "cool", "archive");
  const answer = told(await batch.setBlobsAccessTier(blobs, "Cool"));
  const tiers = await Promise.all(blobs.map(async (blob) => (await blob.getProperties()).accessTier));
  return [answer, tiers];
});
await step("one tier for each", async () => {
  const made = batch.createBatch();
  await made.setBlobAccessTier(client.getBlobClient("cool"), "Cold");
  await made.setBlobAccessTier(client.getBlobClient("archive"), "Archive");
  return told(await batch.submitBatch(made));
});
await step("read what is archived", () => client.getBlobClient("archive").download());
await step("with conditions", async () => {
  const made = batch.createBatch();
  await made.deleteBlob(client.getBlobClient("cool"), { conditions: { ifMatch: '"0x1"' } });
  await made.deleteBlob(client.getBlobClient("archive"), { deleteSnapshots: "include" });
  return [told(await batch.submitBatch(made)), await left(client)];
});
await step("with a token", async () => {
  const expiresOn = new Date(Date.now() + 600_000);
  const permissions = ContainerSASPermissions.parse("d");
  const token = generateBlobSASQueryParameters(
    { containerName: client.containerName, permissions, expiresOn }, credential).toString();
  const tokened = without(client.constructor, `${client.url}?${token}`);
  return told(await tokened.getBlobBatchClient().deleteBlobs([
    tokened.getBlobClient("kept"), tokened.getBlobClient("none")]));
});
await step("with another key", async () => {
  const [blob] = await fill(client, "a");
  const wrong = new StorageSharedKeyCredential(service.accountName, Buffer.from("wrong").toString("base64"));
  const made = batch.createBatch();
  await made.deleteBlob(blob.url, wrong);
  return told(await batch.submitBatch(made));
});
await step("by a stranger", async () => {
  const stranger = new BlobServiceClient(service.url, new StorageSharedKeyCredential(service.accountName, "AAAA"));
  return stranger.getBlobBatchClient().deleteBlobs([client.getBlobClient("a")]);
});
