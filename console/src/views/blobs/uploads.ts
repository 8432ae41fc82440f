// The uploads of this page: they go on while one looks at something else, and end at sign-out.

import { signal } from "@preact/signals";

import { heldId } from "../../protocol/blob/leases";
import type { ContainerPlace } from "../../protocol/blob/place";
import { Slots } from "../../protocol/blob/slots";
import { upload } from "../../protocol/blob/upload";
import { atSignOut } from "../../state/session";

export type UploadState = "waiting" | "running" | "committing" | "done" | "cancelled" | "failed";

export interface Upload {
  readonly number: number;
  readonly place: ContainerPlace;
  readonly name: string;
  readonly sizeBytes: number;
  readonly doneBytes: number;
  readonly skippedBytes: number;
  readonly state: UploadState;
  readonly error: unknown;
}

const FILES_AT_ONCE = 4;
const DONE_EVERY_MS = 1000;

export const uploads = signal<readonly Upload[]>([]);
const aborts = new Map<number, AbortController>();
const files = new Slots(FILES_AT_ONCE);
let last = 0;

/** Upload files into a folder ("" or "a/b/"). `done` is called when some arrived, once a second at most, and at the end. */
export function startUploads(place: ContainerPlace, folder: string, chosen: readonly File[], done: () => void): void {
  const added = chosen.map((file) => ({ file, upload: newUpload(place, folder, file) }));
  uploads.value = [...uploads.value, ...added.map((one) => one.upload)];
  addEventListener("beforeunload", askBeforeLeaving);
  let lastMs = 0;
  const seldom = (): void => {
    if (uploads.value.some(isUnderWay) && Date.now() - lastMs < DONE_EVERY_MS) return;
    lastMs = Date.now();
    done();
  };
  for (const one of added) void run(one.upload, one.file, seldom);
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

// Asks before the window is closed while something is being uploaded.
function askBeforeLeaving(event: BeforeUnloadEvent): void {
  if (uploads.value.some(isUnderWay)) event.preventDefault();
}

atSignOut(() => {
  for (const one of aborts.values()) one.abort();
  uploads.value = [];
});

function newUpload(place: ContainerPlace, folder: string, file: File): Upload {
  last += 1;
  aborts.set(last, new AbortController());
  const name = `${folder}${file.webkitRelativePath || file.name}`;
  return { number: last, place, name, sizeBytes: file.size, doneBytes: 0, skippedBytes: 0, state: "waiting", error: null };
}

async function run({ number, place, name }: Upload, file: File, done: () => void): Promise<void> {
  const end = aborts.get(number);
  if (!end) return;
  const blob = { ...place, blob: name };
  let give: (() => void) | null = null;
  try {
    give = await files.take(end.signal);
    change(number, { state: "running" });
    await upload(blob, file, {
      signal: end.signal,
      leaseId: heldId(blob),
      progress: (doneBytes, skippedBytes) => { change(number, skippedBytes ? { doneBytes, skippedBytes } : { doneBytes }); },
      commits: () => { change(number, { state: "committing" }); },
    });
    change(number, { state: "done" });
    done();
  } catch (error) {
    change(number, end.signal.aborted ? { state: "cancelled" } : { state: "failed", error });
  } finally {
    give?.();
    aborts.delete(number);
  }
}

function change(number: number, values: Partial<Upload>): void {
  uploads.value = uploads.value.map((one) => (one.number === number ? { ...one, ...values } : one));
}
