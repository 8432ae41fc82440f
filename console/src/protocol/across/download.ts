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

interface FilePicker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{ createWritable: () => Promise<WritableFile> }>;
}

/** Download a blob or file. Return false if the person chose no file. `refused` is the text of an Error where no way is open. */
export async function download(place: ReadPlace, properties: ReadProperties, refused: string, progress: (doneBytes: number) => void): Promise<boolean> {
  const name = readName(place);
  if (properties.sizeBytes <= IN_MEMORY_BYTES) {
    const url = objectUrl(await read(place, {}, properties.etag));
    follow(url, name);
    setTimeout(() => { URL.revokeObjectURL(url); }, URL_LASTS_MS);
    return true;
  }
  // The browser decodes what is stored compressed, and cannot decode a part of it.
  const picker = (window as FilePicker).showSaveFilePicker;
  if (picker && !properties.encoding) return intoFile(place, properties, picker, name, progress);
  follow(await linkOf(place, refused), name);
  return true;
}

async function intoFile(
  place: ReadPlace,
  properties: ReadProperties,
  picker: NonNullable<FilePicker["showSaveFilePicker"]>,
  name: string,
  progress: (doneBytes: number) => void,
): Promise<boolean> {
  let file: WritableFile;
  try {
    file = await (await picker.call(window, { suggestedName: name })).createWritable();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return false;
    throw error;
  }
  try {
    for (let at = 0; at < properties.sizeBytes; at += RANGE_BYTES) {
      await file.write(await readRange(place, at, RANGE_BYTES, properties.etag));
      progress(Math.min(at + RANGE_BYTES, properties.sizeBytes));
    }
    await file.close();
  } catch (error) {
    await file.abort().catch(() => undefined);
    throw error;
  }
  return true;
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
