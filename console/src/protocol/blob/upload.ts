// Uploads. A block's id carries the SHA-256 of its bytes, so blocks of two files never mix, and a
// resumed upload skips a block only if the block's own bytes give an id that is there already.
// Nothing shows before the commit, which is for the blob that was there at the beginning. Put Blob is
// not used, even for small files: it stores the Cache-Control that browsers may add to requests.

import { ServiceError } from "../errors";
import { inPieces } from "../pieces";
import { tried } from "../shared/retries";
import { blockList, leased } from "./blobs";
import { askBlob, type BlobPlace } from "./place";

const MIB = 1024 * 1024;
const BLOCK_BYTES = 4 * MIB;
const BLOCKS_MAX = 50_000;

export interface UploadWatch {
  readonly signal: AbortSignal;
  readonly leaseId?: string | undefined;
  /** Called with the bytes that are at the server, and how many of them were there before. */
  readonly progress: (doneBytes: number, skippedBytes: number) => void;
  /** Called before the one request after which the upload cannot be cancelled. */
  readonly commits: () => void;
}

/** Upload a file. Raises: ServiceError (412 or 409 if the blob changed meanwhile), the abort's reason. */
export async function upload(place: BlobPlace, file: File, watch: UploadWatch): Promise<void> {
  const condition = await conditionNow(place, watch.signal);
  const ids = await putBlocks(place, file, watch);
  await commit(place, ids, { ...condition, ...leased(watch.leaseId), ...contentType(file) }, watch);
}

/** Return the condition under which the blob is as it is now: this ETag, or none at all. */
export async function conditionNow(place: BlobPlace, signal: AbortSignal): Promise<Record<string, string>> {
  try {
    const etag = (await askBlob(place, "HEAD", { signal })).headers.get("etag");
    return etag ? { "if-match": etag } : { "if-none-match": "*" };
  } catch (error) {
    // Who may not read may create, but not replace what was never seen.
    if (error instanceof ServiceError && [403, 404].includes(error.status)) return { "if-none-match": "*" };
    throw error;
  }
}

function contentType(file: File): Record<string, string> {
  return file.type ? { "x-ms-blob-content-type": file.type } : {};
}

export function blockSizeFor(sizeBytes: number): number {
  return Math.max(BLOCK_BYTES, Math.ceil(sizeBytes / BLOCKS_MAX / MIB) * MIB);
}

/** Return the id of a block: its SHA-256, in base64. */
export async function blockId(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))));
}

async function putBlocks(place: BlobPlace, file: File, watch: UploadWatch): Promise<string[]> {
  const size = blockSizeFor(file.size);
  const there = file.size > size ? await blocksThere(place, watch.signal) : new Map<string, number>();
  const before = new Set(there.keys());
  const ids = Array.from({ length: Math.ceil(file.size / size) }, () => "");
  let done = 0;
  let skipped = 0;
  await inPieces(file, size, watch.signal, async ({ index, bytes }, signal) => {
    const id = await blockId(bytes);
    // Equal blocks of one file need not be sent again; only what was there before counts as skipped.
    if (there.get(id) !== bytes.length) await putBlock(place, id, bytes, signal, watch.leaseId);
    else if (before.has(id)) skipped += bytes.length;
    there.set(id, bytes.length);
    ids[index] = id;
    done += bytes.length;
    watch.progress(done, skipped);
  });
  return ids;
}

/** Return the sizes of the uncommitted blocks by their ids. */
async function blocksThere(place: BlobPlace, signal: AbortSignal): Promise<Map<string, number>> {
  try {
    const blocks = await blockList(place, "uncommitted", signal);
    return new Map(blocks.map((one) => [one.id, one.sizeBytes]));
  } catch (error) {
    if (error instanceof ServiceError && [403, 404].includes(error.status)) return new Map();
    throw error;
  }
}

async function putBlock(place: BlobPlace, id: string, bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal, leaseId?: string): Promise<void> {
  await tried(signal, async () => { await askBlob(place, "PUT", { query: { comp: "block", blockid: id }, headers: leased(leaseId), body: bytes, signal }); });
}

async function commit(place: BlobPlace, ids: readonly string[], headers: Record<string, string>, watch: UploadWatch): Promise<void> {
  watch.signal.throwIfAborted();
  watch.commits();
  const body = `<?xml version="1.0" encoding="utf-8"?><BlockList>${ids.map((id) => `<Uncommitted>${id}</Uncommitted>`).join("")}</BlockList>`;
  await askBlob(place, "PUT", { query: { comp: "blocklist" }, headers: { ...headers, "content-type": "application/xml" }, body });
}
