// Two states of a blob, compared: their properties, and their bytes as far as these are read. Texts up
// to 1 MiB line by line; what is larger, or no text, by length and SHA-256.

import { type BlobProperties, blobProperties } from "../../protocol/blob/blobs";
import { IN_MEMORY_BYTES, readRange } from "../../protocol/across/download";
import type { BlobPlace } from "../../protocol/blob/place";
import { utcTime } from "../../state/times";
import { texts } from "../../texts";
import { type LineDiff, lineDiff } from "./line_diff";
import { asText, TEXT_BYTES_MAX } from "./preview_kinds";

const names = texts.blobs.facts;

export interface ComparedRow {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

/** What is known of the bytes of both. "unread": of equal length, but they are stored compressed, archived or too large. */
export type Verdict = "same" | "other" | "other_length" | "unread";

export interface Compared {
  readonly verdict: Verdict;
  readonly rows: readonly ComparedRow[];
  /** Null unless both are texts of up to 1 MiB. */
  readonly diff: LineDiff | null;
}

interface Side {
  readonly properties: BlobProperties;
  /** Null: not read. */
  readonly sha256: string | null;
  /** Null: not read, or too many to be kept. */
  readonly bytes: Uint8Array | null;
}

/** Read and compare two states. Raises: as `send`. */
export async function compare(before: BlobPlace, after: BlobPlace, signal: AbortSignal): Promise<Compared> {
  const [left, right] = await Promise.all([blobProperties(before, signal), blobProperties(after, signal)]);
  const isRead = wantsBytes(left, right);
  // One after the other, so that one of them is in memory at a time.
  const old = await sideOf(before, left, isRead, signal);
  const now = await sideOf(after, right, isRead, signal);
  const hashes = isRead ? [{ name: texts.compare.sha256, before: old.sha256 ?? "", after: now.sha256 ?? "" }] : [];
  return { verdict: verdictOf(old, now), rows: [...propertyRows(left, right), ...hashes], diff: diffOf(old, now) };
}

/** Whether the bytes of both can be read, and tell more than their lengths do. */
function wantsBytes(left: BlobProperties, right: BlobProperties): boolean {
  const isReadable = [left, right].every((one) => !one.encoding && one.tier !== "Archive" && one.sizeBytes <= IN_MEMORY_BYTES);
  const areTexts = [left, right].every((one) => one.sizeBytes <= TEXT_BYTES_MAX);
  return isReadable && (areTexts || left.sizeBytes === right.sizeBytes);
}

async function sideOf(place: BlobPlace, properties: BlobProperties, isRead: boolean, signal: AbortSignal): Promise<Side> {
  if (!isRead) return { properties, sha256: null, bytes: null };
  const { sizeBytes, etag } = properties;
  const bytes = sizeBytes ? new Uint8Array(await readRange(place, 0, sizeBytes, etag, signal)) : new Uint8Array(0);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const sha256 = [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { properties, sha256, bytes: sizeBytes <= TEXT_BYTES_MAX ? bytes : null };
}

function verdictOf(old: Side, now: Side): Verdict {
  if (old.properties.sizeBytes !== now.properties.sizeBytes) return "other_length";
  if (old.sha256 === null || now.sha256 === null) return "unread";
  return old.sha256 === now.sha256 ? "same" : "other";
}

function diffOf(old: Side, now: Side): LineDiff | null {
  if (!old.bytes || !now.bytes || old.sha256 === now.sha256) return null;
  const before = asText(old.bytes, false);
  const after = asText(now.bytes, false);
  return before === null || after === null ? null : lineDiff(before, after);
}

const PROPERTIES: readonly (readonly [name: string, of: (one: BlobProperties) => string])[] = [
  [names.size, (one) => `${one.sizeBytes} B`],
  [names.contentType, (one) => one.contentType],
  [names.encoding, (one) => one.encoding],
  [names.language, (one) => one.language],
  [names.disposition, (one) => one.disposition],
  [names.cacheControl, (one) => one.cacheControl],
  [names.modified, (one) => one.modified && utcTime(one.modified)],
  [names.tier, (one) => one.tier],
  [names.etag, (one) => one.etag],
  [names.md5, (one) => one.md5],
  [names.committedBlocks, (one) => one.committedBlocks],
  [names.sequenceNumber, (one) => one.sequenceNumber],
];

/** Return the properties and metadata that either has. */
export function propertyRows(left: BlobProperties, right: BlobProperties): ComparedRow[] {
  const properties = PROPERTIES.map(([name, of]) => ({ name, before: of(left), after: of(right) }));
  const [old, now] = [new Map(left.metadata), new Map(right.metadata)];
  const metadata = [...new Set([...old.keys(), ...now.keys()])].sort().map((name) => ({
    name: texts.compare.metadataOf(name),
    before: old.get(name) ?? "",
    after: now.get(name) ?? "",
  }));
  return [...properties, ...metadata].filter((row) => row.before || row.after);
}
