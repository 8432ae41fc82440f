// A download into a file ends when it is cancelled, when one leaves, and at sign-out. Then there is no file.

import { type JSX, render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { isDownloading } from "../../src/state/downloads";
import { address } from "../../src/state/router";
import { session, signOut } from "../../src/state/session";
import { toasts } from "../../src/state/toasts";
import { texts } from "../../src/texts";
import { OneFile } from "../../src/views/files/file";

const words = texts.blobs;
const credential = { kind: "bearer", token: "" } as const;
const place = { credential, account: "shop", share: "s", path: ["large.bin"] };
const sizeBytes = 100 * 1024 * 1024;
const root = document.createElement("div");
/** What became of the chosen file; the ranges after `answered` are never answered. */
const file = { written: 0, isClosed: false, isAborted: false, isRemoved: false, answered: 1 };

const writable = {
  write: (data: ArrayBuffer) => { file.written += data.byteLength; return Promise.resolve(); },
  close: () => { file.isClosed = true; return Promise.resolve(); },
  abort: () => { file.isAborted = true; return Promise.resolve(); },
};
const chosen = { createWritable: () => Promise.resolve(writable), remove: () => { file.isRemoved = true; return Promise.resolve(); } };

function View(): JSX.Element {
  return session.value ? <OneFile place={place} /> : <p />;
}

function answer(url: URL, { method, headers, signal }: RequestInit): Promise<Response> {
  const range = /bytes=(\d+)-(\d+)/.exec(new Headers(headers).get("range") ?? "");
  const given = { etag: '"1"', "content-length": String(sizeBytes), "content-encoding": "" };
  if (method === "HEAD") return Promise.resolve(new Response("", { headers: given }));
  if (!range) return Promise.resolve(new Response(url.search.includes("comp=listhandles") ? "<EnumerationResults/>" : "", { headers: given }));
  const [first, last] = [Number(range[1]), Math.min(Number(range[2]), sizeBytes - 1)];
  const isPreview = last - first < 1024 * 1024;
  if (isPreview || file.answered > 0) {
    if (!isPreview) file.answered -= 1;
    return Promise.resolve(new Response(new Uint8Array(last - first + 1), { headers: { etag: '"1"' } }));
  }
  return new Promise((_, reject) => { signal?.addEventListener("abort", () => { reject(signal.reason as Error); }); });
}

function button(name: string): HTMLButtonElement | undefined {
  return [...root.querySelectorAll("button")].find((one) => one.textContent === name);
}

async function pressed(name: string): Promise<void> {
  await vi.waitFor(() => { expect(button(name)?.disabled).toBe(false); }, 30_000);
  button(name)?.click();
}

beforeEach(() => {
  Object.assign(file, { written: 0, isClosed: false, isAborted: false, isRemoved: false, answered: 1 });
  vi.stubGlobal("fetch", answer);
  vi.stubGlobal("showSaveFilePicker", () => Promise.resolve(chosen));
  address.value = { view: "files", names: [], query: {} };
  session.value = { credential, who: null };
  toasts.value = [];
  render(<View />, root);
});

afterEach(() => {
  render(null, root);
  signOut();
  vi.unstubAllGlobals();
});

test.each([
  ["its button Cancel", () => { button(texts.dialogs.cancel)?.click(); }],
  ["leaving the view", () => { render(null, root); }],
  ["signing out", () => { signOut(); }],
])("a download ends by %s, and leaves no file", async (_, end) => {
  await pressed(words.download);
  await vi.waitFor(() => { expect(file.written).toBe(8 * 1024 * 1024); }, 30_000);
  end();
  await vi.waitFor(() => { expect(file).toMatchObject({ isAborted: true, isRemoved: true }); }, 30_000);
  await vi.waitFor(() => { expect(isDownloading()).toBe(false); }, 30_000);
  expect(file.isClosed).toBe(false);
  expect(toasts.value).toEqual([]);
});

test("a download that is not ended is whole, and is closed", async () => {
  file.answered = Infinity;
  await pressed(words.download);
  await vi.waitFor(() => { expect(file).toMatchObject({ written: sizeBytes, isClosed: true, isAborted: false, isRemoved: false }); }, 30_000);
  await vi.waitFor(() => { expect(toasts.value.map((one) => one.text)).toEqual([words.downloaded]); }, 30_000);
});
