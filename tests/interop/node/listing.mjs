// Listing blobs: flat, by hierarchy, by page, with what may be included.

import { container, step } from "./steps.mjs";

const client = await container("listing");
const names = [];
for (const folder of ["a", "b", "c"]) {
  for (let n = 0; n < 6; n += 1) names.push(`${folder}/${n}`);
}
names.push("a", "top", "Zebra", "zürich", "a/deep/er/leaf");
await Promise.all(names.map((name) =>
  client.getBlockBlobClient(name).upload(name, Buffer.byteLength(name), { metadata: { name: "n" } })));

await step("order", async () => {
  const found = [];
  for await (const one of client.listBlobsFlat()) found.push(one.name);
  const bytewise = [...names].sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)));
  return [found.length, JSON.stringify(found) === JSON.stringify(bytewise)];
});
await step("pages", async () => {
  const pages = [];
  for await (const page of client.listBlobsFlat().byPage({ maxPageSize: 7 })) {
    pages.push(page.segment.blobItems.length);
  }
  return pages;
});
await step("go on from a token", async () => {
  const first = (await client.listBlobsFlat().byPage({ maxPageSize: 20 }).next()).value;
  const { continuationToken } = first;
  const rest = (await client.listBlobsFlat().byPage({ continuationToken }).next()).value;
  return [first.segment.blobItems.length, rest.segment.blobItems.map((one) => one.name)];
});
await step("prefix", async () => {
  const found = [];
  for await (const one of client.listBlobsFlat({ prefix: "b/" })) found.push(one.name);
  return found;
});
const hierarchy = async (options, settings) => {
  const found = [];
  for await (const page of client.listBlobsByHierarchy("/", options).byPage(settings)) {
    const { blobPrefixes, blobItems } = page.segment;
    found.push([(blobPrefixes ?? []).map((one) => one.name), blobItems.map((one) => one.name)]);
  }
  return found;
};
await step("top", () => hierarchy());
await step("top by page", () => hierarchy({}, { maxPageSize: 3 }));
await step("below a", () => hierarchy({ prefix: "a/" }));
await step("properties", async () => {
  const page = (await client.listBlobsFlat({ prefix: "top", includeMetadata: true }).byPage().next()).value;
  const [{ name, metadata, properties }] = page.segment.blobItems;
  const { contentLength, contentType, blobType, leaseState, accessTier } = properties;
  return { name, metadata, contentLength, contentType, blobType, leaseState, accessTier };
});
await step("uncommitted", async () => {
  await client.getBlockBlobClient("unfinished").stageBlock("AAAA", "x", 1);
  const flat = async (options) => {
    const found = [];
    for await (const one of client.listBlobsFlat({ prefix: "un", ...options })) found.push(one.name);
    return found;
  };
  return [await flat({}), await flat({ includeUncommitedBlobs: true })];
});
await step("of what is missing", () =>
  container("short-lived").then(async (other) => {
    await other.delete();
    await other.listBlobsFlat().byPage().next();
  }));
