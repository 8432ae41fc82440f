// Block blobs: uploads small and large, downloads whole and in part, properties, blocks, names.

import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { bytes, container, sha256, status, step, text } from "./steps.mjs";

const MIB = 1024 * 1024;
const client = await container("blobs");
const blob = client.getBlockBlobClient("folder/hello.txt");

await step("upload", async () => {
  const answer = await blob.upload("hello, wörld", Buffer.byteLength("hello, wörld"), {
    metadata: { Author: "me" },
    blobHTTPHeaders: {
      blobContentType: "text/plain; charset=utf-8",
      blobContentLanguage: "de",
      blobContentEncoding: "identity",
      blobContentDisposition: 'attachment; filename="x.txt"',
      blobCacheControl: "no-cache",
    },
  });
  return [status(answer), answer.isServerEncrypted, answer.etag.length > 2];
});
await step("download", async () => {
  const answer = await blob.download();
  const { contentType, contentLength, blobType, metadata } = answer;
  return { status: status(answer), text: await text(answer), contentType, contentLength, blobType, metadata };
});
await step("download a range", async () => {
  const answer = await blob.download(1, 3);
  return [status(answer), await text(answer), answer.contentRange];
});
await step("download the rest", async () => text(await blob.download(7)));
await step("download beyond the end", () => blob.download(100, 1));
await step("range digests", async () => {
  const md5 = await blob.download(0, 5, { rangeGetContentMD5: true });
  const crc64 = await blob.download(0, 5, { rangeGetContentCrc64: true });
  return [md5.contentMD5.toString("base64"), crc64.contentCrc64.length, await text(md5), await text(crc64)];
});
await step("properties", async () => {
  const found = await blob.getProperties();
  const { contentLength, contentType, contentLanguage, contentEncoding, contentDisposition } = found;
  const { cacheControl, accessTier, leaseState, isServerEncrypted, acceptRanges } = found;
  return {
    contentLength, contentType, contentLanguage, contentEncoding, contentDisposition,
    cacheControl, accessTier, leaseState, isServerEncrypted, acceptRanges,
    md5: found.contentMD5.toString("base64"),
  };
});
await step("set headers", async () => {
  await blob.setHTTPHeaders({ blobContentType: "text/html" });
  const found = await blob.getProperties();
  return [found.contentType, found.contentLanguage ?? null, found.cacheControl ?? null];
});
await step("set metadata", async () => {
  await blob.setMetadata({ other: "thing" });
  return (await blob.getProperties()).metadata;
});
await step("bad metadata name", () => blob.setMetadata({ "not-an-identifier": "x" }));
await step("wrong md5", () =>
  blob.stageBlock("AAAA", "body", 4, { transactionalContentMD5: bytes(16, 1) }));
await step("unchanged", async () => text(await blob.download()));

await step("empty", async () => {
  const empty = client.getBlockBlobClient("empty");
  await empty.upload("", 0);
  return [(await empty.getProperties()).contentLength, await text(await empty.download())];
});

const folder = await mkdtemp(join(tmpdir(), "strongroom-"));
try {
  const data = bytes(23 * MIB + 5, 7);
  const path = join(folder, "data");
  await writeFile(path, data);
  const big = client.getBlockBlobClient("big");
  await step("upload a file in parallel blocks", async () =>
    status(await big.uploadFile(path, { blockSize: MIB, maxSingleShotSize: MIB, concurrency: 5 })));
  await step("its blocks", async () => {
    const found = await big.getBlockList("all");
    return [found.committedBlocks.length, (found.uncommittedBlocks ?? []).length, found.blobContentLength];
  });
  await step("download to a buffer in parallel", async () =>
    sha256(await big.downloadToBuffer(0, undefined, { blockSize: 3 * MIB, concurrency: 4 })) === sha256(data));
  await step("download to a file", async () => {
    await big.downloadToFile(join(folder, "back"));
    return sha256(await readFile(join(folder, "back"))) === sha256(data);
  });
  await step("upload a stream", async () => {
    const streamed = client.getBlockBlobClient("streamed");
    const answer = await streamed.uploadStream(createReadStream(path), 2 * MIB, 3);
    return [status(answer), sha256(await streamed.downloadToBuffer()) === sha256(data)];
  });
  await step("upload at once", async () => {
    const whole = client.getBlockBlobClient("whole");
    const answer = await whole.uploadData(data, { maxSingleShotSize: 64 * MIB });
    return [status(answer), sha256(await whole.downloadToBuffer()) === sha256(data)];
  });
} finally {
  await rm(folder, { recursive: true });
}
await step("a stream of little pieces", async () => {
  const pieces = Array.from({ length: 2000 }, (_, n) => Buffer.from(`piece ${n}\n`));
  const streamed = client.getBlockBlobClient("pieces");
  await streamed.uploadStream(Readable.from(pieces), 4096, 2);
  return sha256(await streamed.downloadToBuffer()) === sha256(Buffer.concat(pieces));
});

const blocks = client.getBlockBlobClient("blocks");
const id = (n) => Buffer.from(`block-${n}`).toString("base64");
await step("stage", async () => {
  for (const n of [1, 2, 3]) await blocks.stageBlock(id(n), `<${n}>`, 3);
  const found = await blocks.getBlockList("uncommitted");
  return [found.uncommittedBlocks, await blocks.exists()];
});
await step("commit some", async () => {
  const answer = await blocks.commitBlockList([id(3), id(1)], { metadata: { by: "list" } });
  const found = await blocks.getBlockList("all");
  return [status(answer), await text(await blocks.download()), found.committedBlocks.length,
    (found.uncommittedBlocks ?? []).length];
});
await step("commit what is missing", () => blocks.commitBlockList([id(2)]));
await step("block ids of other lengths", async () => {
  await blocks.stageBlock(id(4), "x", 1);
  await blocks.stageBlock(Buffer.from("longer block id").toString("base64"), "x", 1);
});

const names = [
  "with space", "ünï/cödé ☃ 😀", "100%", "a%2Fb", "q?&=#hash", "plus+", "quote'\"<>", "dir//double",
  "back\\slash", "trailing.", "~!@$^*()[]{}|;:,",
];
await step("odd names", async () => {
  for (const name of names) {
    const odd = client.getBlockBlobClient(`odd/${name}`);
    await odd.upload(name, Buffer.byteLength(name));
    if ((await text(await odd.download())) !== name) return name;
  }
  const listed = new Set();
  for await (const one of client.listBlobsFlat({ prefix: "odd/" })) listed.add(one.name);
  // A backslash is a slash.
  const missing = names.filter((name) => !listed.has(`odd/${name.replaceAll("\\", "/")}`));
  return missing.concat([...listed].length);
});

await step("not served yet", () => blob.query("select * from BlobStorage"));
await step("delete", async () => status(await blob.delete()));
await step("delete again", () => blob.delete());
await step("deleteIfExists", async () => (await blob.deleteIfExists()).succeeded);
await step("download what is gone", () => blob.download());
