// Leases of blobs and containers.

import { container, status, step } from "./steps.mjs";

const ID = "11111111-2222-3333-4444-555555555555";
const OTHER = "99999999-8888-7777-6666-555555555555";
const client = await container("leases");
const blob = client.getBlockBlobClient("leased");
await blob.upload("body", 4);
const { etag } = await blob.getProperties();
const lease = blob.getBlobLeaseClient(ID);
const put = (leaseId) => blob.upload("next", 4, { conditions: { leaseId } });
const state = async (of) => {
  const { leaseState, leaseStatus, leaseDuration } = await of.getProperties();
  return [leaseState, leaseStatus, leaseDuration ?? null];
};

await step("too short", () => lease.acquireLease(14));
await step("acquire", async () => {
  const answer = await lease.acquireLease(60);
  return [status(answer), answer.leaseId, answer.etag === etag];
});
await step("state", () => state(blob));
await step("acquire by another", () => blob.getBlobLeaseClient(OTHER).acquireLease(15));
await step("acquire again", async () => status(await lease.acquireLease(-1)));
await step("infinite", () => state(blob));
await step("write without", () => put(undefined));
await step("write with another", () => put(OTHER));
await step("write with", async () => status(await put(ID)));
await step("read without", async () => status(await blob.download()));
await step("read with another", () => blob.download(0, undefined, { conditions: { leaseId: OTHER } }));
await step("delete without", () => blob.delete());
await step("renew", async () => status(await lease.renewLease()));
await step("renew by another", () => blob.getBlobLeaseClient(OTHER).renewLease());
await step("change", async () => {
  const answer = await lease.changeLease(OTHER);
  return [status(answer), answer.leaseId, lease.leaseId];
});
await step("release by the old id", () => blob.getBlobLeaseClient(ID).releaseLease());
await step("break", async () => {
  const answer = await lease.breakLease(20);
  return [status(answer), answer.leaseTime > 15 && answer.leaseTime <= 20];
});
await step("breaking", () => state(blob));
await step("acquire while breaking", () => blob.getBlobLeaseClient(ID).acquireLease(15));
await step("break at once", async () => {
  const answer = await lease.breakLease(0);
  return [status(answer), answer.leaseTime];
});
await step("broken", () => state(blob));
await step("renew when broken", () => lease.renewLease());
await step("acquire when broken", async () =>
  status(await blob.getBlobLeaseClient(ID).acquireLease(15)));
await step("release", async () => status(await blob.getBlobLeaseClient(ID).releaseLease()));
await step("released", () => state(blob));
await step("write with a released id", () => put(ID));
await step("break what is free", () => lease.breakLease(0));
await step("lease what is missing", () =>
  client.getBlobClient("missing").getBlobLeaseClient(ID).acquireLease(15));

const held = client.getBlobLeaseClient(ID);
await step("container acquire", async () => status(await held.acquireLease(60)));
await step("container state", () => state(client));
await step("write below it", async () => status(await put(undefined)));
await step("container delete without", () => client.delete());
await step("container renew", async () => status(await held.renewLease()));
await step("container break", async () => status(await held.breakLease(0)));
await step("container acquire again", async () => status(await held.acquireLease(-1)));
await step("container delete with", async () =>
  status(await client.delete({ conditions: { leaseId: ID } })));
