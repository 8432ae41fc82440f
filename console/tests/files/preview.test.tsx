// A file is read once: while somebody writes it, its preview says so, and is read again when one asks.

import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { session } from "../../src/state/session";
import { address } from "../../src/state/router";
import { texts } from "../../src/texts";
import { OneFile } from "../../src/views/files/file";

const words = texts.blobs;
const credential = { kind: "bearer", token: "" } as const;
const place = { credential, account: "shop", share: "s", path: ["f.txt"] };
const root = document.createElement("div");
const file = { text: "first", etag: '"1"', reads: 0 };

function answer(url: URL, { method }: RequestInit): Promise<Response> {
  const headers = { etag: file.etag, "content-length": String(file.text.length), "content-type": "text/plain" };
  if (method === "HEAD") return Promise.resolve(new Response("", { headers }));
  if (url.search.includes("comp=listhandles")) return Promise.resolve(new Response("<EnumerationResults/>"));
  file.reads += 1;
  return Promise.resolve(new Response(file.text, { headers }));
}

const preview = (): string => root.querySelector(".preview")?.textContent ?? "";

async function shows(text: string): Promise<void> {
  await vi.waitFor(() => { expect(preview()).toContain(text); }, 30_000);
}

/** Others write; wait until the page has seen it. */
async function written(text: string, etag: string): Promise<void> {
  Object.assign(file, { text, etag });
  await vi.waitFor(() => { expect(root.querySelector(".facts")?.textContent).toContain(etag); }, 30_000);
}

beforeEach(() => {
  vi.stubGlobal("fetch", answer);
  address.value = { view: "files", names: [], query: {} };
  session.value = { credential, who: null };
  render(<OneFile place={place} />, root);
});

afterEach(() => {
  render(null, root);
  vi.unstubAllGlobals();
});

test("a preview is read again when one asks for it, and not at each change", async () => {
  await shows("first");
  expect(preview()).not.toContain(words.previewChanged);
  await written("second", '"2"');
  await written("third", '"3"');
  await shows(words.previewChanged);
  expect(preview()).toContain("first");
  expect(file.reads).toBe(1);
  [...root.querySelectorAll("button")].find((one) => one.textContent === words.reload)?.click();
  await shows("third");
  expect(preview()).not.toContain(words.previewChanged);
  expect(file.reads).toBe(2);
});
