// Containers: properties, metadata, access policies, public access, deletion.

import { BlobClient, ContainerClient } from "@azure/storage-blob";
import { container, service, status, step, text, without } from "./steps.mjs";

const client = service.getContainerClient("first");
await step("create", async () => status(await client.create({ metadata: { Colour: "blue" } })));
await step("create again", () => client.create());
await step("createIfNotExists", async () => (await client.createIfNotExists()).succeeded);
await step("exists", () => client.exists());
await step("exists not", () => service.getContainerClient("missing").exists());
await step("bad name", () => service.getContainerClient("Bad_Name").create());

await step("properties", async () => {
  const found = await client.getProperties();
  const { metadata, leaseState, leaseStatus, blobPublicAccess, hasLegalHold } = found;
  return { metadata, leaseState, leaseStatus, access: blobPublicAccess ?? null, hasLegalHold };
});
await step("set metadata", async () => {
  const before = (await client.getProperties()).etag;
  const answer = await client.setMetadata({ size: "large" });
  return [status(answer), answer.etag !== before, (await client.getProperties()).metadata];
});

const startsOn = new Date("2020-01-02T03:04:05.678Z");
const expiresOn = new Date("2040-01-02T03:04:05.678Z");
await step("set access policy", async () => {
  const accessPolicy = { startsOn, expiresOn, permissions: "rl" };
  return status(await client.setAccessPolicy("blob", [{ id: "readers <&>", accessPolicy }]));
});
await step("get access policy", async () => {
  const { blobPublicAccess, signedIdentifiers } = await client.getAccessPolicy();
  return { blobPublicAccess, signedIdentifiers };
});

const blob = client.getBlockBlobClient("seen by all");
await blob.upload("public", 6);
const visitor = without(ContainerClient, client.url);
await step("anonymous read", async () =>
  text(await without(BlobClient, blob.url).download()));
await step("anonymous list, blobs public", async () =>
  (await visitor.listBlobsFlat().byPage().next()).value.segment.blobItems.length);
await client.setAccessPolicy("container");
await step("anonymous list, container public", async () =>
  (await visitor.listBlobsFlat().byPage().next()).value.segment.blobItems.length);
await step("anonymous write", () => without(BlobClient, blob.url).delete());
await client.setAccessPolicy();
await step("anonymous read, private", () => without(BlobClient, blob.url).download());
await step("policies are gone", async () => (await client.getAccessPolicy()).signedIdentifiers);

await container("second", { metadata: { n: "2" }, access: "container" });
await container("third");
await step("list", async () => {
  const found = [];
  for await (const one of service.listContainers({ includeMetadata: true })) {
    const { publicAccess, leaseState } = one.properties;
    found.push([one.name, one.metadata ?? null, publicAccess ?? null, leaseState]);
  }
  return found;
});
await step("list by page", async () => {
  const pages = [];
  for await (const page of service.listContainers().byPage({ maxPageSize: 2 })) {
    pages.push(page.containerItems.map((one) => one.name));
  }
  return pages;
});
await step("list by prefix", async () => {
  const found = [];
  for await (const one of service.listContainers({ prefix: "s" })) found.push(one.name);
  return found;
});

await step("delete", async () => status(await client.delete()));
await step("delete again", () => client.delete());
await step("deleteIfExists", async () => (await client.deleteIfExists()).succeeded);
await step("create anew", async () => status(await client.create()));
await step("it is empty", async () => (await blob.exists()));
