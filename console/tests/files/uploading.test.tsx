// Files that are dropped while a question about others is open are asked about too.

import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { session, signOut } from "../../src/state/session";
import { uploads } from "../../src/state/uploads";
import { texts } from "../../src/texts";
import { FileDropArea } from "../../src/views/files/uploading";

const words = texts.files;
const credential = { kind: "bearer", token: "" } as const;
const place = { credential, account: "shop", share: "s", path: [] };
const root = document.createElement("div");

function drop(...names: string[]): void {
  const files = names.map((name) => new File(["new"], name));
  root.querySelector(".drop-area")?.dispatchEvent(Object.assign(new Event("drop", { bubbles: true }), { dataTransfer: { files } }));
}

function asked(): (string | null)[] {
  return [...root.querySelectorAll("dialog li")].map((one) => one.textContent);
}

async function asksAbout(...names: string[]): Promise<void> {
  await vi.waitFor(() => { expect(asked()).toEqual(names); }, 30_000);
}

function press(name: string): void {
  [...root.querySelectorAll<HTMLButtonElement>("dialog button")].find((one) => one.textContent === name)?.click();
}

const started = (): string[] => uploads.value.map((one) => one.name);

beforeEach(() => {
  document.body.append(root);
  // Every name is taken; what is written then is never answered.
  vi.stubGlobal("fetch", (_: URL, { method }: RequestInit) => (method === "HEAD" ? Promise.resolve(new Response("")) : new Promise(() => undefined)));
  session.value = { credential, who: null };
  render(<FileDropArea place={place} done={() => undefined}>{null}</FileDropArea>, root);
});

afterEach(() => {
  signOut();
  render(null, root);
  vi.unstubAllGlobals();
});

test("two drops are two questions, one after the other", async () => {
  drop("a", "b");
  drop("c");
  await asksAbout("a", "b");
  expect(root.querySelectorAll("dialog")).toHaveLength(1);
  press(words.replace);
  await asksAbout("c");
  expect(started()).toEqual(["a", "b"]);
  press(words.replace);
  await vi.waitFor(() => { expect(asked()).toEqual([]); }, 30_000);
  expect(started()).toEqual(["a", "b", "c"]);
});

test("who cancels one question is asked the next", async () => {
  drop("a");
  drop("b");
  await asksAbout("a");
  press(texts.dialogs.cancel);
  await asksAbout("b");
  expect(started()).toEqual([]);
});
