// The uploads of this page: they go on while one looks at something else, and end at sign-out.

import { signal } from "@preact/signals";

import { Slots } from "../protocol/slots";
import { atSignOut } from "./session";

export type UploadState = "waiting" | "running" | "committing" | "done" | "cancelled" | "failed";

export interface Upload {
  readonly number: number;
  /** Where it goes: a container, a share. */
  readonly place: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly doneBytes: number;
  readonly skippedBytes: number;
  readonly state: UploadState;
  readonly error: unknown;
}

export interface SendWatch {
  readonly signal: AbortSignal;
  /** Called with the bytes that are at the server, and how many of them were there before. */
  readonly progress: (doneBytes: number, skippedBytes?: number) => void;
  /** Called before the one request after which the upload cannot be cancelled. */
  readonly commits: () => void;
}

export interface ToUpload {
  readonly name: string;
  readonly file: File;
  readonly send: (watch: SendWatch) => Promise<void>;
}

const FILES_AT_ONCE = 4;
const DONE_EVERY_MS = 1000;

export const uploads = signal<readonly Upload[]>([]);
const aborts = new Map<number, AbortController>();
const files = new Slots(FILES_AT_ONCE);
let last = 0;

/** Upload files into a place. `done` is called when some arrived, once a second at most, and at the end. */
export function startUploads(place: string, chosen: readonly ToUpload[], done: () => void): void {
  const added = chosen.map((one) => ({ one, upload: newUpload(place, one) }));
  uploads.value = [...uploads.value, ...added.map(({ upload }) => upload)];
  addEventListener("beforeunload", askBeforeLeaving);
  let lastMs = 0;
  const seldom = (): void => {
    if (isUploading() && Date.now() - lastMs < DONE_EVERY_MS) return;
    lastMs = Date.now();
    done();
  };
  for (const { one, upload } of added) void run(upload.number, one, seldom);
}

export function cancelUpload(number: number): void {
  aborts.get(number)?.abort();
}

export function hideFinished(): void {
  uploads.value = uploads.value.filter(isUnderWay);
}

export function isUnderWay({ state }: Upload): boolean {
  return state === "waiting" || state === "running" || state === "committing";
}

export function isUploading(): boolean {
  return uploads.value.some(isUnderWay);
}

// Asks before the window is closed while something is being uploaded.
function askBeforeLeaving(event: BeforeUnloadEvent): void {
  if (isUploading()) event.preventDefault();
}

atSignOut(() => {
  for (const one of aborts.values()) one.abort();
  uploads.value = [];
});

function newUpload(place: string, { name, file }: ToUpload): Upload {
  last += 1;
  aborts.set(last, new AbortController());
  return { number: last, place, name, sizeBytes: file.size, doneBytes: 0, skippedBytes: 0, state: "waiting", error: null };
}

async function run(number: number, { send }: ToUpload, done: () => void): Promise<void> {
  const end = aborts.get(number);
  if (!end) return;
  let give: (() => void) | null = null;
  try {
    give = await files.take(end.signal);
    change(number, { state: "running" });
    await send({
      signal: end.signal,
      progress: (doneBytes, skippedBytes = 0) => { change(number, skippedBytes ? { doneBytes, skippedBytes } : { doneBytes }); },
      commits: () => { change(number, { state: "committing" }); },
    });
    change(number, { state: "done" });
    done();
  } catch (error) {
    const isCancelled = end.signal.aborted && !(error instanceof Incomplete);
    change(number, isCancelled ? { state: "cancelled" } : { state: "failed", error });
  } finally {
    give?.();
    aborts.delete(number);
  }
}

/** An upload ended, and left something behind that a person should know of, even one who cancelled it. */
export class Incomplete extends Error {}

function change(number: number, values: Partial<Upload>): void {
  uploads.value = uploads.value.map((one) => (one.number === number ? { ...one, ...values } : one));
}
