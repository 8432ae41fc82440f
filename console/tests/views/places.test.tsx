// A sign-in is offered what it may do with the queues, tables and shares of an account.

import { render } from "preact";
import { afterEach, expect, test, vi } from "vitest";

import type { Service } from "../../src/protocol/credentials";
import { session } from "../../src/state/session";
import { texts } from "../../src/texts";
import { ShareList } from "../../src/views/files/share_list";
import { OneQueue } from "../../src/views/queues/one_queue";
import { QueueList } from "../../src/views/queues/queue_list";
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
