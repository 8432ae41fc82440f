// Shared access signatures: of the account, a container, a blob, by a stored policy.

import {
  AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, BlobClient,
  BlobSASPermissions, BlobServiceClient, BlockBlobClient, ContainerClient, ContainerSASPermissions,
  SASProtocol, generateAccountSASQueryParameters, generateBlobSASQueryParameters,
} from "@azure/storage-blob";
import { container, credential, service, status, step, text, without } from "./steps.mjs";

const client = await container("signed");
const blob = client.getBlockBlobClient("folder/blob ü");
await blob.upload("secret", 6);
const hour = 3600_000;
const expiresOn = new Date(Date.now() + hour);

function account(letters, types) {
  const token = generateAccountSASQueryParameters({
    permissions: AccountSASPermissions.parse(letters),
    resourceTypes: AccountSASResourceTypes.parse(types).toString(),
    services: AccountSASServices.parse("b").toString(),
    startsOn: new Date(Date.now() - hour),
    expiresOn,
  }, credential).toString();
  return without(BlobServiceClient, `${service.url}?${token}`);
}
function inContainer(settings) {
  const token = generateBlobSASQueryParameters({ containerName: "signed", ...settings }, credential);
  return without(ContainerClient, `${client.url}?${token}`);
}
function onBlob(settings, at = blob) {
  const named = { containerName: "signed", blobName: at.name, expiresOn, ...settings };
  const token = generateBlobSASQueryParameters(named, credential);
  return without(BlockBlobClient, `${at.url}?${token}`);
}
const read = (from) => from.download().then(text);
const named = (from) => from.getBlobClient(blob.name);

await step("account", async () => {
  const all = account("rwdlac", "sco");
  const made = all.getContainerClient("made-with-sas");
  await made.create();
  await made.getBlockBlobClient("x").upload("x", 1);
  const found = [];
  for await (const one of all.listContainers()) found.push(one.name);
  await made.delete();
  return [found, await read(named(all.getContainerClient("signed")))];
});
await step("account without the resource type", () =>
  account("rwdl", "o").getContainerClient("signed").getProperties());
await step("account without the permission", () =>
  named(account("l", "sco").getContainerClient("signed")).download());

const parse = (letters) => ContainerSASPermissions.parse(letters);
await step("container", async () => {
  const reader = inContainer({ permissions: parse("rl"), expiresOn });
  const page = (await reader.listBlobsFlat().byPage().next()).value;
  return [await read(named(reader)), page.segment.blobItems.length];
});
await step("container without the permission", () =>
  named(inContainer({ permissions: parse("rl"), expiresOn })).delete());
await step("container expired", () =>
  named(inContainer({ permissions: parse("r"), expiresOn: new Date(Date.now() - hour) })).download());
await step("container not yet", () =>
  named(inContainer({ permissions: parse("r"), startsOn: expiresOn, expiresOn: new Date(Date.now() + 2 * hour) })).download());
await step("of another container", () =>
  named(inContainer({ containerName: "other", permissions: parse("r"), expiresOn })).download());

const may = (letters) => BlobSASPermissions.parse(letters);
await step("blob", () => read(onBlob({ permissions: may("r") })));
await step("blob written", async () => {
  const writer = onBlob({ permissions: may("cw") }, client.getBlockBlobClient("written"));
  return status(await writer.upload("x", 1));
});
await step("blob created only", async () => {
  const writer = onBlob({ permissions: may("c") }, client.getBlockBlobClient("created"));
  const first = status(await writer.upload("x", 1));
  return [first, await writer.upload("x", 1).then(status, (error) => error.statusCode)];
});
await step("of another blob", async () => {
  const token = new URL(onBlob({ permissions: may("r") }).url).search;
  return without(BlobClient, client.getBlobClient("written").url + token).download();
});
await step("tampered", () =>
  without(BlobClient, onBlob({ permissions: may("r") }).url.replace("sp=r", "sp=rw")).download());
await step("https only", () =>
  onBlob({ permissions: may("r"), protocol: SASProtocol.Https }).download());
await step("from here", () =>
  read(onBlob({ permissions: may("r"), ipRange: { start: "127.0.0.0", end: "127.0.0.9" } })));
await step("from elsewhere", () =>
  onBlob({ permissions: may("r"), ipRange: { start: "10.0.0.1" } }).download());
await step("headers of the answer", async () => {
  const shown = onBlob({
    permissions: may("r"), contentType: "text/x-override", cacheControl: "no-store",
    contentDisposition: "inline; filename=ü.txt",
  });
  const { contentType, cacheControl } = await shown.getProperties();
  return [contentType, cacheControl];
});
await step("of a snapshot", async () => {
  const { snapshot } = await blob.createSnapshot();
  const at = blob.withSnapshot(snapshot);
  const url = await at.generateSasUrl({ permissions: may("r"), expiresOn });
  const base = new URL(url);
  base.searchParams.delete("snapshot");
  const refused = await without(BlobClient, base.href).download().then(status, (e) => e.statusCode);
  return [await read(without(BlobClient, url)), refused];
});

const policy = (permissions) =>
  client.setAccessPolicy(undefined, [{ id: "stored", accessPolicy: { permissions, expiresOn } }]);
const byPolicy = inContainer({ identifier: "stored" });
await step("policy not there", () => named(byPolicy).download());
await policy("r");
await step("policy", () => read(named(byPolicy)));
await policy("l");
await step("policy changed", () => named(byPolicy).download());
await client.setAccessPolicy();
await step("policy revoked", () => named(byPolicy).download());
