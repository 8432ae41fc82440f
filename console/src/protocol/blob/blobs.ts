// One blob: what a read says of it, and the acts on it. Not here: its bytes (upload.ts, download.ts).

import { server } from "../../state/session";
import { metadataOf, type Pairs, timeOf } from "../shared/headers";
import { childOf, childrenOf, escapeXml, parseXml, textOf } from "../shared/xml";
import { type BlobRow, listBlobs, tagsOf } from "./listing";
import { askBlob, type BlobPlace, blobPath, withoutState } from "./place";

export interface BlobProperties {
  readonly type: string;
  readonly sizeBytes: number;
  readonly contentType: string;
  readonly encoding: string;
  readonly language: string;
  readonly disposition: string;
  readonly cacheControl: string;
  readonly md5: string;
  readonly etag: string;
  readonly created: string;
  readonly modified: string;
  readonly tier: string;
  readonly leaseState: string;
  readonly leaseDuration: string;
  readonly version: string;
  readonly isCurrent: boolean;
  readonly tagCount: number;
  readonly metadata: Pairs;
  readonly copyStatus: string;
  readonly copySource: string;
  readonly isSealed: boolean;
  readonly committedBlocks: string;
  readonly sequenceNumber: string;
  readonly lockedUntil: string;
  readonly lockMode: string;
  readonly hasLegalHold: boolean;
}

export async function blobProperties(place: BlobPlace, signal?: AbortSignal): Promise<BlobProperties> {
  return propertiesOf((await askBlob(place, "HEAD", { signal })).headers);
}

export function propertiesOf(headers: Headers): BlobProperties {
  const get = (name: string): string => headers.get(name) ?? "";
  return {
    type: get("x-ms-blob-type"),
    sizeBytes: Number(get("content-length") || 0),
    contentType: get("content-type"),
    encoding: get("content-encoding"),
    language: get("content-language"),
    disposition: get("content-disposition"),
    cacheControl: get("cache-control"),
    md5: get("content-md5"),
    etag: get("etag"),
    created: timeOf(get("x-ms-creation-time")),
    modified: timeOf(get("last-modified")),
    tier: get("x-ms-access-tier"),
    leaseState: get("x-ms-lease-state"),
    leaseDuration: get("x-ms-lease-duration"),
    version: get("x-ms-version-id"),
    isCurrent: get("x-ms-is-current-version") === "true",
    tagCount: Number(get("x-ms-tag-count") || 0),
    metadata: metadataOf(headers),
    copyStatus: get("x-ms-copy-status"),
    copySource: get("x-ms-copy-source"),
    isSealed: get("x-ms-blob-sealed") === "true",
    committedBlocks: get("x-ms-blob-committed-block-count"),
    sequenceNumber: get("x-ms-blob-sequence-number"),
    lockedUntil: timeOf(get("x-ms-immutability-policy-until-date")),
    lockMode: get("x-ms-immutability-policy-mode"),
    hasLegalHold: get("x-ms-legal-hold") === "true",
  };
}

export async function blobTags(place: BlobPlace, signal?: AbortSignal): Promise<Pairs> {
  const root = parseXml(await (await askBlob(place, "GET", { query: { comp: "tags" }, signal })).text());
  return tagsOf(root);
}

export async function setBlobTags(place: BlobPlace, tags: Pairs, leaseId?: string): Promise<void> {
  const rows = tags.map(([key, value]) => `<Tag><Key>${escapeXml(key)}</Key><Value>${escapeXml(value)}</Value></Tag>`).join("");
  const body = `<?xml version="1.0" encoding="utf-8"?><Tags><TagSet>${rows}</TagSet></Tags>`;
  const headers = { "content-type": "application/xml", ...leased(leaseId) };
  await askBlob(place, "PUT", { query: { comp: "tags" }, headers, body });
}

/** Replace all metadata, if the blob is still the one that was read. */
export async function setBlobMetadata(place: BlobPlace, metadata: Pairs, etag: string, leaseId?: string): Promise<void> {
  const headers = { ...Object.fromEntries(metadata.map(([name, value]) => [`x-ms-meta-${name}`, value])), "if-match": etag, ...leased(leaseId) };
  await askBlob(place, "PUT", { query: { comp: "metadata" }, headers });
}

export async function setBlobTier(place: BlobPlace, tier: string, leaseId?: string): Promise<void> {
  await askBlob(place, "PUT", { query: { comp: "tier" }, headers: { "x-ms-access-tier": tier, ...leased(leaseId) } });
}

/** Take a snapshot. Return its time, which names it. */
export async function takeSnapshot(place: BlobPlace): Promise<string> {
  return (await askBlob(place, "PUT", { query: { comp: "snapshot" } })).headers.get("x-ms-snapshot") ?? "";
}

/** Delete a blob with its snapshots, or the one snapshot or version that `place` names. */
export async function deleteBlob(place: BlobPlace, leaseId?: string): Promise<void> {
  const snapshots = place.snapshot || place.version ? {} : { "x-ms-delete-snapshots": "include" };
  await askBlob(place, "DELETE", { headers: { ...snapshots, ...leased(leaseId) } });
}

/** Bring back a deleted blob and its deleted snapshots. */
export async function restoreBlob(place: BlobPlace): Promise<void> {
  await askBlob(place, "PUT", { query: { comp: "undelete" } });
}

/** Make a snapshot or a previous version the blob's content again, by a copy on the server. */
export async function promote(place: BlobPlace, leaseId?: string): Promise<void> {
  const { snapshot, version } = place;
  const current = withoutState(place);
  const which = snapshot ? `snapshot=${encodeURIComponent(snapshot)}` : `versionid=${encodeURIComponent(version ?? "")}`;
  const token = place.credential.kind === "sas" ? `&${place.credential.token}` : "";
  const source = `${ownPortUrl(current)}?${which}${token}`;
  await askBlob(current, "PUT", { headers: { "x-ms-copy-source": source, ...leased(leaseId) } });
}

/** Return the address of a blob or container at the Blob service's own port. */
export function ownPortUrl(place: BlobPlace | { readonly account: string; readonly path: string }): string {
  const base = server.value?.services.find((one) => one.name === "blob")?.url ?? location.origin;
  const path = "path" in place ? place.path : blobPath(place);
  return `${base.replace(/\/$/, "")}/${place.account}${path}`;
}

/** Return the versions and snapshots of one blob, newest first; the blob itself is among them. */
export async function listVersions(place: BlobPlace, signal: AbortSignal): Promise<BlobRow[]> {
  const found: BlobRow[] = [];
  let marker = "";
  do {
    const page = await listBlobs(place, { prefix: place.blob, marker, include: "snapshots,versions,deleted", signal });
    found.push(...page.rows.filter((row) => row.name === place.blob));
    const isPast = page.rows.some((row) => row.name !== place.blob);
    marker = isPast ? "" : page.next;
  } while (marker);
  return found.reverse();
}

export interface Block {
  readonly id: string;
  readonly sizeBytes: number;
  readonly isCommitted: boolean;
}

export async function blockList(place: BlobPlace, kind: "all" | "uncommitted", signal?: AbortSignal): Promise<Block[]> {
  const answer = await askBlob(place, "GET", { query: { comp: "blocklist", blocklisttype: kind }, signal });
  const root = parseXml(await answer.text());
  const section = (name: string, isCommitted: boolean): Block[] =>
    childrenOf(childOf(root, name), "Block").map((one) => ({ id: textOf(one, "Name"), sizeBytes: Number(textOf(one, "Size")), isCommitted }));
  return [...section("CommittedBlocks", true), ...section("UncommittedBlocks", false)];
}

export interface PageRange {
  readonly start: number;
  readonly end: number;
}

/** Return the first ranges of pages that hold something, at most one answer of them. */
export async function pageRanges(place: BlobPlace, signal?: AbortSignal): Promise<PageRange[]> {
  const root = parseXml(await (await askBlob(place, "GET", { query: { comp: "pagelist", maxresults: 1000 }, signal })).text());
  return childrenOf(root, "PageRange").map((one) => ({ start: Number(textOf(one, "Start")), end: Number(textOf(one, "End")) }));
}

export function leased(leaseId: string | undefined): Record<string, string> {
  return leaseId ? { "x-ms-lease-id": leaseId } : {};
}
