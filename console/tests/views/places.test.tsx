// A sign-in is offered what it may do with the queues, tables and shares of an account.

import { render } from "preact";
import { afterEach, expect, test, vi } from "vitest";

import type { Service } from "../../src/protocol/credentials";
import { session } from "../../src/state/session";
import { texts } from "../../src/texts";
import { ShareList } from "../../src/views/files/share_list";
import { Messages } from "../../src/views/queues/messages";
import { OneQueue } from "../../src/views/queues/one_queue";
import { QueueList } from "../../src/views/queues/queue_list";
import { OneTable } from "../../src/views/tables/one_table";
import { TableList } from "../../src/views/tables/table_list";

const root = document.createElement("div");
const ONE = "abc";
const LISTS = {
  queue: `<EnumerationResults><Queues><Queue><Name>${ONE}</Name></Queue></Queues><NextMarker/></EnumerationResults>`,
  table: JSON.stringify({ value: [{ TableName: ONE }] }),
  file: `<EnumerationResults><Shares><Share><Name>${ONE}</Name><Properties/></Share></Shares><NextMarker/></EnumerationResults>`,
};
const VIEWS = { queue: QueueList, table: TableList, file: ShareList };
const WORDS = { queue: texts.queues, table: texts.tables, file: texts.files };
const KINDS = ["queue", "table", "file"] as const;

function signIn(service: Service, token: string): void {
  session.value = { credential: { kind: "sas", account: "shop", service, path: "", token }, who: null };
}

async function isOff(name: string): Promise<boolean> {
  const named = (one: Element): boolean => [one.textContent, one.getAttribute("aria-label")].includes(name);
  const found = await vi.waitFor(() => {
    const button = [...root.querySelectorAll("button")].find(named);
    if (!button) throw new Error(`no button ${name}`);
    return button;
  }, 30_000);
  return found.disabled;
}

function show(kind: (typeof KINDS)[number]): void {
  const View = VIEWS[kind];
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(LISTS[kind])));
  render(<View owner="shop" />, root);
}

afterEach(() => {
  render(null, root);
  vi.unstubAllGlobals();
});

test.each(KINDS)("who may only list is offered neither a new %s nor a deletion", async (kind) => {
  signIn(kind, "ss=qtf&srt=sco&sp=rl&sig=x");
  show(kind);
  expect(await isOff(WORDS[kind].newPlace)).toBe(true);
  expect(await isOff(WORDS[kind].deleteOf(ONE))).toBe(true);
});

test.each(KINDS)("who may do both with a %s is offered both", async (kind) => {
  signIn(kind, "ss=qtf&srt=sco&sp=rlcd&sig=x");
  show(kind);
  expect(await isOff(WORDS[kind].newPlace)).toBe(false);
  expect(await isOff(WORDS[kind].deleteOf(ONE))).toBe(false);
});

test("a signature of one queue is offered neither its clearing nor its deletion", async () => {
  signIn("queue", "sp=raup&sig=x");
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("", { headers: { "x-ms-approximate-messages-count": "0" } })));
  render(<OneQueue at={{ account: "shop", queue: ONE }} isOnly />, root);
  expect(await isOff(texts.queues.clear)).toBe(true);
  expect(await isOff(texts.queues.deleteOf(ONE))).toBe(true);
});

const WAITS = { "x-ms-approximate-messages-count": "0" };
const GOT = "<QueueMessagesList><QueueMessage><MessageId>1</MessageId><MessageText>text</MessageText><PopReceipt>r</PopReceipt><DequeueCount>1</DequeueCount><TimeNextVisible>Wed, 01 Jan 2098 00:00:00 GMT</TimeNextVisible></QueueMessage></QueueMessagesList>";

test.each([
  ["r", { Peek: false, Get: true, Put: true }],
  ["a", { Peek: true, Get: true, Put: false }],
  ["p", { Peek: true, Get: false, Put: true }],
])("a signature of a queue with %s is offered what it may do with messages", async (letter, offered) => {
  signIn("queue", `sp=${letter}&sig=x`);
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("", { headers: WAITS })));
  render(<OneQueue at={{ account: "shop", queue: ONE }} isOnly />, root);
  for (const [name, off] of Object.entries(offered)) expect([name, await isOff(name)]).toEqual([name, off]);
});

test("who may get messages, and not change them, is offered to delete what was gotten", async () => {
  signIn("queue", "sp=p&sig=x");
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(GOT, { headers: WAITS })));
  render(<Messages at={{ account: "shop", queue: ONE }} onChanged={() => undefined} />, root);
  expect(await isOff("Get")).toBe(false);
  [...root.querySelectorAll("button")].find((one) => one.textContent === "Get")?.click();
  expect(await isOff("Update")).toBe(true);
  expect(await isOff("Delete")).toBe(false);
});

const ENTITIES = JSON.stringify({ value: [{ "PartitionKey": "p", "RowKey": "r", "State": "old", "odata.etag": "W/\"1\"" }] });

function showTable(letters: string): void {
  signIn("table", `tn=${ONE}&sp=${letters}&sig=x`);
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(ENTITIES)));
  vi.stubGlobal("ResizeObserver", class { observe(): void { /* no size */ } disconnect(): void { /* nothing */ } });
  render(<OneTable at={{ account: "shop", table: ONE }} isOnly />, root);
}

function stateCell(): Element | undefined {
  return [...root.querySelectorAll("[role=gridcell]")].find((one) => one.textContent === "old");
}

test("who may only read a table is offered no new entity, no import, no change and no deletion", async () => {
  showTable("r");
  await vi.waitFor(() => { expect(stateCell()?.getAttribute("aria-readonly")).toBe("true"); }, 30_000);
  expect([await isOff("Add entity"), await isOff("Import"), await isOff("Export")]).toEqual([true, true, false]);
  expect([...root.querySelectorAll("[role=grid] button")]).toEqual([]);
});

test("who may add and read is offered an import that stops at what is there", async () => {
  showTable("ra");
  expect([await isOff("Add entity"), await isOff("Import")]).toEqual([false, false]);
  [...root.querySelectorAll("button")].find((one) => one.textContent === "Import")?.click();
  const options = await vi.waitFor(() => {
    const found = [...root.querySelectorAll("dialog option")].map((one) => one.textContent);
    expect(found).not.toEqual([]);
    return found;
  }, 30_000);
  expect(options).toEqual([texts.tables.modes.stop]);
});

test("who may do all with a table is offered all", async () => {
  showTable("raud");
  await vi.waitFor(() => { expect(stateCell()?.getAttribute("aria-readonly")).not.toBe("true"); }, 30_000);
  expect([await isOff("Add entity"), await isOff("Import"), await isOff(texts.tables.deleteOf("r"))]).toEqual([false, false, false]);
});
