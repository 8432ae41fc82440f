// Downloads of blobs and files. Up to 64 MiB through memory; larger ones by ranges into a file that the person
// chooses; where the browser has no such thing, by an address that permits to read just this one.

import { signedQuery } from "../blob/links";
import { type Asked, askBlob, type BlobPlace, blobPath } from "../blob/place";
import { askFile, filePath, type PathPlace } from "../files/place";
import { makeFileSas } from "../files/sas";
import { pathOf } from "../requests";

/** What is read: a blob, or a file of a share. */
export type ReadPlace = BlobPlace | PathPlace;

/** What reading needs to know of it; of a blob, its properties have it. */
export interface ReadProperties {
  readonly sizeBytes: number;
  readonly etag: string;
  readonly encoding: string;
  readonly contentType: string;
  /** "" for files. */
  readonly tier: string;
}

export const IN_MEMORY_BYTES = 64 * 1024 * 1024;
const RANGE_BYTES = 8 * 1024 * 1024;
const LINK_MS = 5 * 60_000;
const URL_LASTS_MS = 60_000;

/** The types that an object URL may have: none of them runs. */
const SHOWN_TYPES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Return an object URL, of an image's type or of none; never of the type that is stored. */
export function objectUrl(bytes: ArrayBuffer, type = ""): string {
  return URL.createObjectURL(new Blob([bytes], { type: SHOWN_TYPES.includes(type) ? type : "application/octet-stream" }));
}

/** Return the last name of a blob or file, without what lies above. */
export function readName(place: ReadPlace): string {
  const whole = "path" in place ? (place.path.at(-1) ?? "") : place.blob;
  return whole.split("/").pop() || whole;
}

/** Read bytes from `start` on, at most `length`; of the state with this ETag, if one is given. */
export async function readRange(place: ReadPlace, start: number, length: number, etag = "", signal?: AbortSignal): Promise<ArrayBuffer> {
  return read(place, { headers: { range: `bytes=${start}-${start + length - 1}` }, signal }, etag);
}

/** Raises: Error if a file has another ETag: the File service does not look at If-Match. */
async function read(place: ReadPlace, asked: Asked, etag: string): Promise<ArrayBuffer> {
  if (!("path" in place)) {
    const headers = { ...asked.headers, ...(etag ? { "if-match": etag } : {}) };
    return (await askBlob(place, "GET", { ...asked, headers })).arrayBuffer();
  }
  const answer = await askFile(place, "GET", asked);
  if (etag && answer.headers.get("etag") !== etag) throw new Error("the file was changed while it was read; read it again");
  return answer.arrayBuffer();
}

interface WritableFile {
  write(data: ArrayBuffer): Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

interface ChosenFile {
  createWritable(): Promise<WritableFile>;
  /** Not in every browser. */
  remove?(): Promise<void>;
}

interface FilePicker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<ChosenFile>;
}

export interface DownloadWatch {
  readonly signal: AbortSignal;
  readonly progress: (doneBytes: number) => void;
  /** The text of the Error where no way is open. */
  readonly refused: string;
}

/**
 * Download a blob or file. Return false if the person chose no file.
 *
 * Raises: the abort's reason, ServiceError, Error. Then there is no file, nor a part of one.
 */
export async function download(place: ReadPlace, properties: ReadProperties, watch: DownloadWatch): Promise<boolean> {
  const name = readName(place);
  const { signal } = watch;
  if (properties.sizeBytes <= IN_MEMORY_BYTES) {
    const bytes = await read(place, { signal }, properties.etag);
    signal.throwIfAborted();
    const url = objectUrl(bytes);
    follow(url, name);
    setTimeout(() => { URL.revokeObjectURL(url); }, URL_LASTS_MS);
    return true;
  }
  // The browser decodes what is stored compressed, and cannot decode a part of it.
  const picker = (window as FilePicker).showSaveFilePicker;
  if (picker && !properties.encoding) {
    const chosen = await choose(picker, name);
    if (chosen) await intoFile(place, properties, chosen, watch);
    return chosen !== null;
  }
  follow(await linkOf(place, watch.refused), name);
  return true;
}

/** Let the person choose a file; null: none was chosen. Browsers make it, empty, when it is chosen. */
async function choose(picker: NonNullable<FilePicker["showSaveFilePicker"]>, name: string): Promise<ChosenFile | null> {
  try {
    return await picker.call(window, { suggestedName: name });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return null;
    throw error;
  }
}

async function intoFile(place: ReadPlace, { sizeBytes, etag }: ReadProperties, chosen: ChosenFile, { signal, progress }: DownloadWatch): Promise<void> {
  const file = await chosen.createWritable();
  try {
    for (let at = 0; at < sizeBytes; at += RANGE_BYTES) {
      await file.write(await readRange(place, at, RANGE_BYTES, etag, signal));
      progress(Math.min(at + RANGE_BYTES, sizeBytes));
    }
    // What is written takes the file's name when it is closed, and not before.
    signal.throwIfAborted();
    await file.close();
  } catch (error) {
    await file.abort().catch(() => undefined);
    await chosen.remove?.().catch(() => undefined);
    throw error;
  }
}

async function linkOf(place: ReadPlace, refused: string): Promise<string> {
  if ("path" in place) {
    const { credential, account, share, path, snapshot } = place;
    if (credential.kind !== "key") throw new Error(refused);
    const token = await makeFileSas({ credential, share, path, validMs: LINK_MS, nowMs: Date.now() });
    const state = snapshot ? `sharesnapshot=${encodeURIComponent(snapshot)}&` : "";
    return `/file${pathOf(account)}${filePath(place)}?${state}${token}`;
  }
  const signed = await signedQuery(place, ["r"], LINK_MS);
  if (typeof signed === "string") throw new Error(refused);
  return `/blob${pathOf(place.account)}${blobPath(place)}?${signed.query}`;
}

function follow(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.rel = "noopener";
  link.click();
}
