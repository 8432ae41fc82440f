// Downloads. Up to 64 MiB through memory; larger ones by ranges into a file that the person
// chooses; where the browser has no such thing, by an address that permits to read this one blob.

import type { BlobProperties } from "./blobs";
import { signedQuery } from "./links";
import { askBlob, type BlobPlace, blobPath } from "./place";

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

/** Read bytes from `start` on, at most `length`; of the blob with this ETag, if one is given. */
export async function readRange(place: BlobPlace, start: number, length: number, etag = "", signal?: AbortSignal): Promise<ArrayBuffer> {
  const headers = { range: `bytes=${start}-${start + length - 1}`, ...(etag ? { "if-match": etag } : {}) };
  return (await askBlob(place, "GET", { headers, signal })).arrayBuffer();
}

interface WritableFile {
  write(data: ArrayBuffer): Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

interface FilePicker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{ createWritable: () => Promise<WritableFile> }>;
}

/** Download a blob. Return false if the person chose no file. `refused` is the text of an Error where no way is open. */
export async function download(place: BlobPlace, properties: BlobProperties, refused: string, progress: (doneBytes: number) => void): Promise<boolean> {
  const name = place.blob.split("/").pop() || place.blob;
  if (properties.sizeBytes <= IN_MEMORY_BYTES) {
    const url = objectUrl(await (await askBlob(place, "GET", { headers: { "if-match": properties.etag } })).arrayBuffer());
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
  place: BlobPlace,
  properties: BlobProperties,
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

async function linkOf(place: BlobPlace, refused: string): Promise<string> {
  const signed = await signedQuery(place, ["r"], LINK_MS);
  if (typeof signed === "string") throw new Error(refused);
  return `/blob/${place.account}${blobPath(place)}?${signed.query}`;
}

function follow(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.rel = "noopener";
  link.click();
}
