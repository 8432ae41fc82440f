// Two people edit one entity: who is refused chooses, or goes back to what was typed.

import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { session } from "../../src/state/session";
import { toasts } from "../../src/state/toasts";
import { texts } from "../../src/texts";
import { EntityGrid } from "../../src/views/tables/entity_grid";
import { type Rows, rowsOf } from "../../src/views/tables/rows";

const words = texts.tables;
const at = { account: "shop", table: "orders" };
const root = document.createElement("div");
const stored = { etag: "1", State: "old" };
let rows: Rows;

function Grid() {
  return <EntityGrid at={at} rows={rows} columns={[{ name: "State", type: "String", widthPx: 100 }]} onDelete={() => undefined} />;
}

function answer(url: URL, { method }: RequestInit): Promise<Response> {
  const entity = { PartitionKey: "p", RowKey: "r", State: stored.State, "odata.etag": stored.etag };
  if (method === "MERGE") return Promise.resolve(Response.json({ "odata.error": { code: "UpdateConditionNotSatisfied" } }, { status: 412 }));
  return Promise.resolve(Response.json(url.pathname.endsWith("()") ? { value: [entity] } : entity));
}

async function found<Found>(find: () => Found | null | undefined): Promise<Found> {
  return vi.waitFor(() => {
    const one = find();
    if (!one) throw new Error("it is not there");
    return one;
  }, 30_000);
}

const cell = (text: string): Promise<Element> => found(() => [...root.querySelectorAll('[role="gridcell"]')].find((one) => one.textContent === text));
const field = (): Promise<HTMLTextAreaElement> => found(() => root.querySelector("textarea"));
const dialog = (): Promise<Element> => found(() => root.querySelector("dialog"));

/** Type into the cell that says "old", and press Enter. */
async function edit(text: string): Promise<void> {
  (await cell("old")).dispatchEvent(new Event("dblclick", { bubbles: true }));
  await enter(text);
}

async function enter(text: string): Promise<void> {
  const area = await field();
  area.value = text;
  area.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
}

beforeEach(async () => {
  Object.assign(stored, { etag: "1", State: "old" });
  toasts.value = [];
  vi.stubGlobal("fetch", answer);
  session.value = { credential: { kind: "bearer", token: "" }, who: null };
  document.body.append(root);
  rows = rowsOf(at, "");
  rows.load();
  await vi.waitFor(() => { expect(rows.entities.value).toHaveLength(1); }, 30_000);
  render(<Grid />, root);
});

afterEach(() => {
  render(null, root);
  vi.unstubAllGlobals();
});

test("Cancel goes back to the edit, with what was typed", async () => {
  await cell("old");
  stored.State = "theirs";
  await edit("mine");
  const shown = await dialog();
  [...shown.querySelectorAll("button")].find((one) => one.textContent === texts.dialogs.cancel)?.click();
  const area = await field();
  expect(root.querySelector("dialog")).toBeNull();
  expect(area.value).toBe("mine");
  expect(document.activeElement).toBe(area);
  area.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  await cell("old");
  await edit("again");
  await dialog();
});

test("the same value written by others is no conflict", async () => {
  await cell("old");
  stored.State = "same";
  await edit("same");
  await cell("same");
  expect(root.querySelector("dialog")).toBeNull();
  expect(toasts.value.map((one) => one.text)).toEqual([words.saved]);
});
