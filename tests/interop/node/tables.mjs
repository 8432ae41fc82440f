// Tables: entities of every type, conditions, merges, queries with pages, transactions, policies.

import { TableClient, TableServiceClient, TableTransaction, odata } from "@azure/data-tables";
import { step } from "./steps.mjs";

const connectionString = process.argv[2];
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const service = TableServiceClient.fromConnectionString(connectionString, options);

/** A client of a table that need not be there. */
function table(name) {
  return TableClient.fromConnectionString(connectionString, name, options);
}

/** All of an asynchronous sequence. */
async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

/** An entity without what changes from run to run. */
function plain({ etag, timestamp, "odata.metadata": context, ...rest }) {
  return rest;
}

const people = table("People");
await step("create", async () => (await people.createTable()) ?? null);
// The SDK takes "it is there already" for success.
await step("create again", async () => (await people.createTable()) ?? null);
await step("list", async () => (await all(service.listTables())).map((one) => one.name));
await step("list by name", async () =>
  (await all(service.listTables({ queryOptions: { filter: odata`TableName eq ${"Other"}` } }))).length);
await step("bad name", () => service.createTable("a-b"));

const everything = {
  partitionKey: "p", rowKey: "it's 100%",
  text: "grün \u{1F600}", yes: true, small: 7, large: 12345678901234n, half: 0.5,
  whole: { type: "Double", value: "3" }, none: { type: "Double", value: "NaN" },
  moment: new Date("2013-08-09T18:55:48.340Z"),
  exact: { type: "DateTime", value: "2013-08-09T18:55:48.3402073Z" },
  id: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
  bytes: new Uint8Array([0, 1, 255]),
};
await step("insert", async () => typeof (await people.createEntity(everything)).etag);
await step("insert again", () => people.createEntity(everything));
await step("get", async () => {
  const found = plain(await people.getEntity("p", "it's 100%"));
  return {
    ...found, large: `${found.large}`, bytes: [...found.bytes], moment: found.moment.toISOString(),
    half: found.half,
  };
});
await step("types are told", async () => {
  const found = await people.getEntity("p", "it's 100%", { disableTypeConversion: true });
  return [found.large.type, found.exact.value, found.none.value, found.whole.type];
});
await step("select", async () =>
  plain(await people.getEntity("p", "it's 100%", { queryOptions: { select: ["small", "missing"] } })));
await step("get what is not there", () => people.getEntity("p", "nobody"));

await step("merge", async () => {
  await people.updateEntity({ partitionKey: "p", rowKey: "it's 100%", small: 8 }, "Merge");
  const { small, text } = await people.getEntity("p", "it's 100%");
  return [small, text];
});
const seen = (await people.getEntity("p", "it's 100%")).etag;
await step("replace with the tag", async () => {
  await people.updateEntity({ partitionKey: "p", rowKey: "it's 100%", small: 9 }, "Replace", { etag: seen });
  return plain(await people.getEntity("p", "it's 100%"));
});
await step("replace with the old tag", () =>
  people.updateEntity({ partitionKey: "p", rowKey: "it's 100%", small: 10 }, "Replace", { etag: seen }));
await step("update what is not there", () => people.updateEntity({ partitionKey: "p", rowKey: "x" }));
await step("upsert", async () => {
  await people.upsertEntity({ partitionKey: "p", rowKey: "up", a: 1 }, "Merge");
  await people.upsertEntity({ partitionKey: "p", rowKey: "up", b: 2 }, "Merge");
  await people.upsertEntity({ partitionKey: "p", rowKey: "up2", a: 1 }, "Replace");
  return plain(await people.getEntity("p", "up"));
});
await step("delete with the old tag", () => people.deleteEntity("p", "it's 100%", { etag: seen }));
await step("delete", async () => (await people.deleteEntity("p", "it's 100%"), "done"));
await step("bad key", () => people.createEntity({ partitionKey: "a/b", rowKey: "r" }));

const many = table("Many");
await many.createTable();
for (let part = 0; part < 3; part += 1) {
  const actions = [];
  for (let number = 0; number < 100; number += 1) {
    const rowKey = `${part * 100 + number}`.padStart(4, "0");
    actions.push(["create", { partitionKey: "p", rowKey, number: part * 100 + number, even: number % 2 === 0 }]);
  }
  await many.submitTransaction(actions);
}
await step("query", async () =>
  (await all(many.listEntities({ queryOptions: { filter: odata`number ge ${10} and number lt ${20} and even eq ${true}` } })))
    .map((one) => one.number).sort((a, b) => a - b));
await step("pages", async () => {
  const sizes = [];
  for await (const page of many.listEntities().byPage({ maxPageSize: 130 })) sizes.push(page.length);
  return sizes;
});
await step("a page goes on where it ended", async () => {
  const first = await many.listEntities().byPage({ maxPageSize: 299 }).next();
  const rest = await many.listEntities().byPage({ continuationToken: first.value.continuationToken }).next();
  return [first.value.length, rest.value.length];
});
await step("a filter that cannot be read", () =>
  all(many.listEntities({ queryOptions: { filter: "number gt" } })));

await step("transaction", async () => {
  const transaction = new TableTransaction();
  transaction.createEntity({ partitionKey: "t", rowKey: "1", a: 1 });
  transaction.upsertEntity({ partitionKey: "t", rowKey: "2", a: 2 }, "Merge");
  transaction.deleteEntity("t", "0");
  await many.createEntity({ partitionKey: "t", rowKey: "0" });
  const answer = await many.submitTransaction(transaction.actions);
  return [answer.status, answer.subResponses.map((one) => one.status), typeof answer.getResponseForEntity("1").etag];
});
await step("a transaction that fails is undone", () =>
  many.submitTransaction([
    ["create", { partitionKey: "t", rowKey: "3" }],
    ["create", { partitionKey: "t", rowKey: "1" }],
  ]));
await step("what is left of it", async () =>
  (await all(many.listEntities({ queryOptions: { filter: "PartitionKey eq 't'" } }))).map((one) => one.rowKey));

await step("access policy", async () => {
  const expiry = new Date("2040-01-02T03:04:05.678Z");
  await many.setAccessPolicy([{ id: "readers", accessPolicy: { permission: "r", expiry } }]);
  const [found] = await many.getAccessPolicy();
  return [found.id, found.accessPolicy.permission, found.accessPolicy.expiry.toISOString()];
});
await step("properties", async () => {
  await service.setProperties({ cors: [{ allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 5 }] });
  return (await service.getProperties()).cors.length;
});
await step("delete table", async () => (await people.deleteTable()) ?? null);
await step("created again at once", async () => {
  await people.createTable();
  return (await all(people.listEntities())).length;
});
