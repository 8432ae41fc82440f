// Conditional requests on blobs and containers.

import { container, status, step, text } from "./steps.mjs";

const client = await container("conditions");
const blob = client.getBlockBlobClient("page");
const PAST = new Date("2001-01-01T00:00:00Z");
const FUTURE = new Date(Date.now() + 3600_000);

const put = (body, conditions) => blob.upload(body, body.length, { conditions });
const first = (await put("one")).etag;
await step("create only, over another", () => put("x", { ifNoneMatch: "*" }));
await step("create only, new", async () =>
  status(await client.getBlockBlobClient("new").upload("x", 1, { conditions: { ifNoneMatch: "*" } })));
await step("replace only, missing", () =>
  client.getBlockBlobClient("missing").upload("x", 1, { conditions: { ifMatch: "*" } }));
await step("if match", async () => {
  const answer = await put("two", { ifMatch: first });
  return [status(answer), answer.etag !== first];
});
const second = (await blob.getProperties()).etag;
await step("stale if match", () => put("lost", { ifMatch: first }));
await step("the second stands", async () => text(await blob.download()));
await step("read if match, stale", () => blob.download(0, undefined, { conditions: { ifMatch: first } }));
await step("read if none match", () =>
  blob.download(0, undefined, { conditions: { ifNoneMatch: second } }));
await step("properties if none match", () =>
  blob.getProperties({ conditions: { ifNoneMatch: second } }));
await step("read if none match, changed", async () =>
  text(await blob.download(0, undefined, { conditions: { ifNoneMatch: first } })));
await step("read if modified since", () =>
  blob.download(0, undefined, { conditions: { ifModifiedSince: FUTURE } }));
await step("read if unmodified since", () =>
  blob.download(0, undefined, { conditions: { ifUnmodifiedSince: PAST } }));
await step("write if unmodified since", () => put("x", { ifUnmodifiedSince: PAST }));
await step("write if modified since", () => put("x", { ifModifiedSince: FUTURE }));
await step("metadata, stale", () => blob.setMetadata({ a: "b" }, { conditions: { ifMatch: first } }));
await step("headers, stale", () =>
  blob.setHTTPHeaders({ blobContentType: "a/b" }, { conditions: { ifMatch: first } }));
await step("snapshot, stale", () => blob.createSnapshot({ conditions: { ifMatch: first } }));
await step("block list, stale", () => blob.commitBlockList([], { conditions: { ifMatch: first } }));
await step("lease, stale", () =>
  blob.getBlobLeaseClient().acquireLease(15, { conditions: { ifMatch: first } }));
await step("delete, stale", () => blob.delete({ conditions: { ifMatch: first } }));
await step("of many writers one wins", async () => {
  const { etag } = await blob.getProperties();
  const tries = Array.from({ length: 16 }, (_, n) => put(`writer ${n}`, { ifMatch: etag }));
  const ends = await Promise.allSettled(tries);
  const won = ends.filter((end) => end.status === "fulfilled").length;
  const lost = ends.filter((end) => end.reason?.statusCode === 412).length;
  return [won, lost];
});
await step("delete, matching", async () =>
  status(await blob.delete({ conditions: { ifMatch: (await blob.getProperties()).etag } })));
await step("container metadata if modified since", () =>
  client.setMetadata({ a: "b" }, { conditions: { ifModifiedSince: FUTURE } }));
await step("container delete if unmodified since", () =>
  client.delete({ conditions: { ifUnmodifiedSince: PAST } }));
await step("container delete if modified since", async () =>
  status(await client.delete({ conditions: { ifModifiedSince: PAST } })));
