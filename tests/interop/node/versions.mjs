// Versions, their deletion and return, immutability and tags of blobs.
//
// The account makes versions and lets blobs be immutable.

import { container, service, status, step, text } from "./steps.mjs";

await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } });
const client = await container("versions");
const blob = client.getBlockBlobClient("b");
const ids = [];

async function put(content, settings) {
  const answer = await blob.upload(content, content.length, settings);
  ids.push(answer.versionId);
  return answer;
}

async function listed(settings) {
  const found = [];
  for await (const one of client.listBlobsFlat(settings)) {
    const number = ids.indexOf(one.versionId);
    found.push([one.name, number, one.isCurrentVersion ?? false, one.deleted ?? false]);
  }
  return found;
}

await step("two versions", async () => {
  await put("one", { tags: { turn: "1" } });
  await put("two", { tags: { turn: "2" } });
  return ids[0] < ids[1];
});
await step("list", () => listed({ includeVersions: true }));
await step("list plainly", async () => (await listed()).length);
await step("read the old one", async () => {
  const answer = await blob.withVersion(ids[0]).download();
  return [await text(answer), answer.versionId === ids[0], answer.isCurrentVersion ?? false];
});
await step("properties of the new one", async () => {
  const { versionId, isCurrentVersion } = await blob.getProperties();
  return [versionId === ids[1], isCurrentVersion];
});
await step("promote", async () => {
  await (await blob.beginCopyFromURL(blob.withVersion(ids[0]).url)).pollUntilDone();
  ids.push((await blob.getProperties()).versionId);
  return text(await blob.download());
});
await step("delete the current one by its id", () => blob.withVersion(ids[2]).delete());
await step("delete", async () => status(await blob.delete()));
await step("it is gone", () => blob.download());
await step("list what is left", () => listed({ includeVersions: true }));
await step("names with versions only", async () => {
  const found = [];
  for await (const one of client.listBlobsFlat({ includeDeletedWithVersions: true })) {
    found.push([one.name, one.hasVersionsOnly]);
  }
  return found;
});
await step("delete a version", async () => status(await blob.withVersion(ids[0]).delete()));
await step("list the deleted", () => listed({ includeVersions: true, includeDeleted: true }));
await step("undelete", async () => status(await blob.undelete()));
await step("it is back", async () => text(await blob.withVersion(ids[0]).download()));

await step("tags of versions", async () => {
  const tags = [];
  for (const id of ids.slice(0, 2)) tags.push((await blob.withVersion(id).getTags()).tags.turn);
  return tags;
});
await step("set tags", async () => {
  await put("three");
  const answer = await blob.setTags({ turn: "3", "a key": "a value" });
  return [status(answer), (await blob.getTags()).tags];
});
await step("read if tags", async () =>
  text(await blob.download(0, undefined, { conditions: { tagConditions: "turn = '3'" } })));
await step("write if other tags", () =>
  blob.setMetadata({}, { conditions: { tagConditions: "turn = '4'" } }));
await step("find by tags", async () => {
  const found = [];
  for await (const one of client.findBlobsByTags("turn >= '0'")) found.push([one.name, one.tags]);
  return found;
});
await step("find in the account", async () => {
  const found = [];
  const where = "@container = 'versions' AND turn = '3'";
  for await (const one of service.findBlobsByTags(where)) found.push(one.containerName);
  return found;
});
await step("find nothing", async () => {
  const found = [];
  for await (const one of client.findBlobsByTags("turn = '4'")) found.push(one);
  return found.length;
});

const until = new Date("2100-01-02T03:04:05Z");
await step("set a policy", async () => {
  const policy = { expiriesOn: until, policyMode: "Unlocked" };
  const answer = await blob.setImmutabilityPolicy(policy);
  return [status(answer), answer.immutabilityPolicyExpiry, answer.immutabilityPolicyMode];
});
await step("set a hold", async () => (await blob.setLegalHold(true)).legalHold);
await step("protection", async () => {
  const found = await blob.getProperties();
  const { immutabilityPolicyExpiresOn, immutabilityPolicyMode, legalHold } = found;
  return { immutabilityPolicyExpiresOn, immutabilityPolicyMode, legalHold };
});
await step("change what is held", () => blob.setMetadata({ a: "1" }));
await step("overwrite it", async () => status(await put("four")));
await step("delete the version that is held", () => blob.withVersion(ids[3]).delete());
await step("clear the hold", async () => {
  const held = blob.withVersion(ids[3]);
  const answer = await held.setLegalHold(false);
  return answer.legalHold;
});
await step("delete the version with a policy", () => blob.withVersion(ids[3]).delete());
await step("delete the policy", async () =>
  status(await blob.withVersion(ids[3]).deleteImmutabilityPolicy()));
await step("delete the version", async () => status(await blob.withVersion(ids[3]).delete()));
await step("upload with a hold", async () => {
  const answer = await put("five", { legalHold: true });
  return [status(answer), (await blob.getProperties()).legalHold];
});
await step("delete the container", () => client.delete());
