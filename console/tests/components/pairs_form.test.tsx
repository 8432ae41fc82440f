// What was typed as metadata stays while others write, and is saved over nothing that was not seen.

import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { BlobProperties } from "../../src/protocol/blob/blobs";
import type { NodeProperties } from "../../src/protocol/files/nodes";
import type { Pairs } from "../../src/protocol/shared/headers";
import { session } from "../../src/state/session";
import { toasts } from "../../src/state/toasts";
import { texts } from "../../src/texts";
import { MetadataAndTags } from "../../src/views/blobs/metadata";
import { MetadataPanel } from "../../src/views/files/node_forms";

const words = texts.blobs;
const credential = { kind: "bearer", token: "" } as const;
const blob = { credential, account: "shop", container: "c", blob: "b" };
const file = { credential, account: "shop", share: "s", path: ["f"] };
const root = document.createElement("div");
document.body.append(root); // else no form is submitted
/** What the service has, and the If-Match and metadata of each write. */
const stored = { metadata: [] as Pairs, tag: "", writes: [] as unknown[] };

function answer(_: URL, { method, headers }: RequestInit): Promise<Response> {
  const sent = new Headers(headers);
  if (method === "PUT") stored.writes.push([sent.get("if-match"), sent.get("x-ms-meta-a")]);
  if (method === "GET") return Promise.resolve(new Response(`<Tags><TagSet><Tag><Key>a</Key><Value>${stored.tag}</Value></Tag></TagSet></Tags>`));
  return Promise.resolve(new Response("", { headers: stored.metadata.map(([name, value]) => [`x-ms-meta-${name}`, value] as [string, string]) }));
}

function showBlob(metadata: Pairs, etag: string): void {
  const properties = { etag, metadata } as unknown as BlobProperties;
  render(<MetadataAndTags place={blob} properties={properties} changed={() => undefined} />, root);
}

function showFile(metadata: Pairs): void {
  const properties = { etag: "1", metadata } as unknown as NodeProperties;
  render(<MetadataPanel place={file} isDirectory={false} properties={properties} changed={() => undefined} />, root);
}

/** Several turns of the loop, each long enough for a frame: on a busy machine the timers of frames and effects come late, but in order. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setTimeout(resolve, 20));
}
const form = (label: string = words.metadata): Element | null => root.querySelector(`form[aria-label="${label}"]`);
const values = (label?: string): string[] => [...(form(label)?.querySelectorAll("input") ?? [])].map((one) => one.value);
const button = (name: string, label?: string): HTMLButtonElement | undefined => [...(form(label)?.querySelectorAll("button") ?? [])].find((one) => one.textContent === name);
const said = (label?: string): string => form(label)?.querySelector('[role="status"]')?.textContent ?? "";

async function type(value: string, label?: string): Promise<void> {
  const [, field] = form(label)?.querySelectorAll("input") ?? [];
  if (field) field.value = value;
  field?.dispatchEvent(new Event("input", { bubbles: true }));
  await settled();
}

async function press(name: string, label?: string): Promise<void> {
  button(name, label)?.click();
  await settled();
}

beforeEach(() => {
  Object.assign(stored, { metadata: [], tag: "1", writes: [] });
  toasts.value = [];
  vi.stubGlobal("fetch", answer);
  session.value = { credential, who: null };
});

afterEach(() => {
  render(null, root);
  vi.unstubAllGlobals();
});

test("rows that nobody touched follow what there is", async () => {
  showBlob([["a", "1"]], "e1");
  await settled();
  showBlob([["a", "2"], ["b", "3"]], "e2");
  await settled();
  expect(values()).toEqual(["a", "2", "b", "3"]);
  expect(said()).toBe("");
});

test("a draft stays while others write, and is saved once the person has chosen", async () => {
  showBlob([["a", "1"]], "e1");
  await settled();
  await type("mine");
  showBlob([["a", "theirs"]], "e2");
  await settled();
  expect(values()).toEqual(["a", "mine"]);
  expect(said()).toBe(words.pairsChanged);
  expect(form()?.textContent).toContain("a: theirs");
  await press(words.save);
  expect(stored.writes).toEqual([]);
  await press(texts.tables.keepMine);
  expect(said()).toBe("");
  await press(words.save);
  expect(stored.writes).toEqual([["e2", "mine"]]);
});

test("who takes theirs drops the draft", async () => {
  showBlob([["a", "1"]], "e1");
  await settled();
  await type("mine");
  showBlob([["a", "theirs"]], "e2");
  await settled();
  await press(texts.tables.takeTheirs);
  expect(values()).toEqual(["a", "theirs"]);
  expect(said()).toBe("");
});

test("a write of the content alone changes the condition, and asks nothing", async () => {
  showBlob([["a", "1"]], "e1");
  await settled();
  await type("mine");
  showBlob([["a", "1"]], "e2");
  await settled();
  expect(said()).toBe("");
  await press(words.save);
  expect(stored.writes).toEqual([["e2", "mine"]]);
});

test("what one has saved oneself is no change by others", async () => {
  showBlob([["b", "2"], ["A", "1"]], "e1");
  await settled();
  await type("3");
  await press(words.save);
  await type("4");
  showBlob([["a", "1"], ["b", "3"]], "e2");
  await settled();
  expect(said()).toBe("");
  expect(values()).toEqual(["b", "4", "A", "1"]);
});

test("metadata of a file that others changed since it was seen is not replaced", async () => {
  showFile([["a", "1"]]);
  stored.metadata = [["a", "theirs"]];
  await type("mine");
  await press(words.save);
  expect(stored.writes).toEqual([]);
  expect(toasts.value.map((one) => one.text)).toEqual([words.pairsChangedBefore]);
  stored.metadata = [["a", "1"]];
  await press(words.save);
  expect(stored.writes).toEqual([[null, "mine"]]);
});

test("tags that others changed since they were seen are not replaced, and are shown", async () => {
  const tags = words.tagsHeading;
  showBlob([], "e1");
  await vi.waitFor(() => { expect(values(tags)).toEqual(["a", "1"]); }, 30_000);
  stored.tag = "theirs";
  await type("mine", tags);
  await press(words.save, tags);
  await vi.waitFor(() => { expect(said(tags)).toBe(words.pairsChanged); }, 30_000);
  expect(stored.writes).toEqual([]);
  expect(values(tags)).toEqual(["a", "mine"]);
  await press(texts.tables.keepMine, tags);
  await press(words.save, tags);
  await vi.waitFor(() => { expect(stored.writes).toHaveLength(1); }, 30_000);
});
