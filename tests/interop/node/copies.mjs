// Snapshots and copies, at once and in the background.

import { ContainerSASPermissions } from "@azure/storage-blob";
import { bytes, container, sha256, status, step, text } from "./steps.mjs";

const MIB = 1024 * 1024;
const client = await container("copies");
const source = client.getBlockBlobClient("source");
await source.upload("first", 5, { metadata: { n: "1" }, blobHTTPHeaders: { blobContentType: "a/b" } });

const taken = await source.createSnapshot();
await source.upload("second", 6);
const snapshot = source.withSnapshot(taken.snapshot);
await step("snapshot", async () => [status(taken), await text(await snapshot.download())]);
await step("base", async () => text(await source.download()));
await step("snapshot with metadata", async () => {
  const other = await source.createSnapshot({ metadata: { n: "2" } });
  return (await source.withSnapshot(other.snapshot).getProperties()).metadata;
});
await step("write to a snapshot", () => snapshot.setMetadata({ a: "b" }));
await step("list snapshots", async () => {
  const found = [];
  for await (const one of client.listBlobsFlat({ includeSnapshots: true })) {
    found.push(Boolean(one.snapshot));
  }
  return found;
});
await step("delete with snapshots", () => source.delete());

const copy = client.getBlockBlobClient("copy");
await step("small copy", async () => {
  const poller = await copy.beginCopyFromURL(source.url, { metadata: { copied: "yes" } });
  const done = await poller.pollUntilDone();
  const { copyStatus, copyProgress, metadata } = await copy.getProperties();
  return [done.copyStatus, copyStatus, copyProgress, metadata, await text(await copy.download())];
});
await step("copy of a snapshot", async () => {
  await (await copy.beginCopyFromURL(snapshot.url)).pollUntilDone();
  const found = await copy.getProperties();
  return [await text(await copy.download()), found.metadata, found.contentType];
});
await step("nothing to abort", async () =>
  copy.abortCopyFromURL((await copy.getProperties()).copyId));
await step("copy of what is missing", () => copy.beginCopyFromURL(client.getBlobClient("none").url));
await step("copy with a stale source etag", () =>
  copy.beginCopyFromURL(source.url, { sourceConditions: { ifMatch: '"0x8D0000000000000"' } }));
await step("copy over, create only", () =>
  copy.beginCopyFromURL(source.url, { conditions: { ifNoneMatch: "*" } }));

const permissions = ContainerSASPermissions.parse("r");
const expiresOn = new Date(Date.now() + 3600_000);
await step("copy while waiting", async () => {
  const target = client.getBlockBlobClient("synced");
  const url = await source.generateSasUrl({ permissions, expiresOn });
  const answer = await target.syncCopyFromURL(url);
  return [status(answer), answer.copyStatus, await text(await target.download())];
});

const big = client.getBlockBlobClient("big");
const data = bytes(40 * MIB, 3);
await big.uploadData(data, { blockSize: 4 * MIB, maxSingleShotSize: MIB, concurrency: 4 });
await step("large copy", async () => {
  const target = client.getBlockBlobClient("big copy");
  const poller = await target.beginCopyFromURL(big.url, { intervalInMs: 50 });
  const done = await poller.pollUntilDone();
  const { copyStatus, copyProgress } = await target.getProperties();
  const same = sha256(await target.downloadToBuffer()) === sha256(data);
  const blocks = (await target.getBlockList("committed")).committedBlocks.length;
  return [done.copyStatus, copyStatus, copyProgress, same, blocks];
});
await step("abort", async () => {
  // The copy may be over first; then nothing is pending, and the target holds all of it.
  const target = client.getBlockBlobClient("aborted");
  const poller = await target.beginCopyFromURL(big.url, { intervalInMs: 50 });
  const { copyId } = poller.getOperationState();
  let aborted = true;
  try {
    if (status(await target.abortCopyFromURL(copyId)) !== 204) return "not 204";
  } catch (error) {
    if (error.code !== "NoPendingCopyOperation") return error.code;
    aborted = false;
  }
  const found = await target.getProperties();
  return aborted
    ? found.copyStatus === "aborted" && found.contentLength === 0
    : found.copyStatus === "success" && found.contentLength === data.length;
});
await step("delete snapshots only", async () => {
  await source.delete({ deleteSnapshots: "only" });
  return [await source.exists(), await snapshot.exists()];
});
await step("delete all", async () => {
  await source.createSnapshot();
  return status(await source.delete({ deleteSnapshots: "include" }));
});
