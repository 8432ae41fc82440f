// Shares: the list, their properties, quota, metadata and snapshots. Source: "Operations on shares".

import { metadataOf, type Pairs, timeOf } from "../shared/headers";
import { childOf, childrenOf, nameOf, parseXml, textOf } from "../shared/xml";
import { askFileAccount, askShare, type FileAccount, type SharePlace } from "./place";

export interface ShareRow {
  readonly name: string;
  readonly modified: string;
  readonly quotaGib: number;
  readonly tier: string;
  readonly leaseState: string;
  /** "" for the share itself. */
  readonly snapshot: string;
  /** Names the deleted share where one is listed; else "". */
  readonly deletedVersion: string;
  readonly remainingDays: string;
}

export interface SharePage {
  readonly rows: readonly ShareRow[];
  /** For the next page; "" after the last. */
  readonly next: string;
}

export interface SharesAsked {
  readonly prefix: string;
  readonly marker: string;
  /** What else is wanted: "deleted", "snapshots". */
  readonly include?: string;
  readonly maxresults: number;
}

export async function listShares(place: FileAccount, asked: SharesAsked, signal?: AbortSignal): Promise<SharePage> {
  const { prefix, marker, include, maxresults } = asked;
  const query = { comp: "list", include: include || undefined, maxresults, prefix: prefix || undefined, marker: marker || undefined };
  return readSharePage(await (await askFileAccount(place, "GET", { query, signal })).text());
}

export function readSharePage(xml: string): SharePage {
  const root = parseXml(xml);
  return { rows: childrenOf(childOf(root, "Shares"), "Share").map(shareRow), next: textOf(root, "NextMarker") };
}

function shareRow(element: Element): ShareRow {
  const properties = childOf(element, "Properties");
  return {
    name: nameOf(element),
    modified: timeOf(textOf(properties, "Last-Modified")),
    quotaGib: Number(textOf(properties, "Quota") || 0),
    tier: textOf(properties, "AccessTier"),
    leaseState: textOf(properties, "LeaseState"),
    snapshot: textOf(element, "Snapshot"),
    deletedVersion: textOf(element, "Deleted") === "true" ? textOf(element, "Version") : "",
    remainingDays: textOf(properties, "RemainingRetentionDays"),
  };
}

/** Return the snapshots of one share, newest first. */
export async function listShareSnapshots(place: SharePlace, signal?: AbortSignal): Promise<ShareRow[]> {
  const found: ShareRow[] = [];
  let marker = "";
  do {
    const page = await listShares(place, { prefix: place.share, marker, include: "snapshots", maxresults: 1000 }, signal);
    found.push(...page.rows.filter((row) => row.name === place.share && row.snapshot));
    marker = page.rows.some((row) => row.name !== place.share) ? "" : page.next;
  } while (marker);
  return found.reverse();
}

/** Make a share. `quotaGib`: null for the service's own. */
export async function createShare(place: SharePlace, quotaGib: number | null): Promise<void> {
  await askShare(place, "PUT", { headers: quotaHeaders(quotaGib) });
}

/** Delete a share with its snapshots, or the one snapshot that `place` names. */
export async function deleteShare(place: SharePlace, leaseId?: string): Promise<void> {
  const snapshots: Record<string, string> = place.snapshot ? {} : { "x-ms-delete-snapshots": "include" };
  await askShare(place, "DELETE", { headers: { ...snapshots, ...leaseHeaders(leaseId) } });
}

/** Bring a deleted share back under its own name. */
export async function restoreShare(place: FileAccount, name: string, version: string): Promise<void> {
  const headers = { "x-ms-deleted-share-name": name, "x-ms-deleted-share-version": version };
  await askShare({ ...place, share: name }, "PUT", { query: { comp: "undelete" }, headers });
}

export interface ShareProperties {
  readonly modified: string;
  readonly etag: string;
  readonly quotaGib: number;
  readonly tier: string;
  readonly leaseState: string;
  readonly leaseDuration: string;
  readonly metadata: Pairs;
}

export async function shareProperties(place: SharePlace, signal?: AbortSignal): Promise<ShareProperties> {
  // Not HEAD: its refusals have no words.
  const answer = await askShare(place, "GET", { signal });
  await answer.arrayBuffer();
  const { headers } = answer;
  const get = (name: string): string => headers.get(name) ?? "";
  return {
    modified: timeOf(get("last-modified")),
    etag: get("etag"),
    quotaGib: Number(get("x-ms-share-quota") || 0),
    tier: get("x-ms-access-tier"),
    leaseState: get("x-ms-lease-state"),
    leaseDuration: get("x-ms-lease-duration"),
    metadata: metadataOf(headers),
  };
}

/** Return how many bytes the files of a share have. */
export async function shareUsage(place: SharePlace, signal?: AbortSignal): Promise<number> {
  const root = parseXml(await (await askShare(place, "GET", { query: { comp: "stats" }, signal })).text());
  return Number(textOf(root, "ShareUsageBytes") || 0);
}

export async function setQuota(place: SharePlace, quotaGib: number, leaseId?: string): Promise<void> {
  await askShare(place, "PUT", { query: { comp: "properties" }, headers: { ...quotaHeaders(quotaGib), ...leaseHeaders(leaseId) } });
}

/** Replace all metadata of a share. */
export async function setShareMetadata(place: SharePlace, metadata: Pairs, leaseId?: string): Promise<void> {
  await askShare(place, "PUT", { query: { comp: "metadata" }, headers: { ...metadataHeaders(metadata), ...leaseHeaders(leaseId) } });
}

/** Take a snapshot. Return its time, which names it. */
export async function takeShareSnapshot(place: SharePlace): Promise<string> {
  return (await askShare(place, "PUT", { query: { comp: "snapshot" } })).headers.get("x-ms-snapshot") ?? "";
}

/** Return the security descriptor of a permission key, as SDDL. */
export async function permissionOf(place: SharePlace, key: string, signal?: AbortSignal): Promise<string> {
  // Permissions lie in the share, not in its snapshots.
  const { credential, account, share } = place;
  const answer = await askShare({ credential, account, share }, "GET", { query: { comp: "filepermission" }, headers: { "x-ms-file-permission-key": key }, signal });
  return ((await answer.json()) as { readonly permission?: string }).permission ?? "";
}

export function metadataHeaders(metadata: Pairs): Record<string, string> {
  return Object.fromEntries(metadata.map(([name, value]) => [`x-ms-meta-${name}`, value]));
}

export function leaseHeaders(leaseId: string | undefined): Record<string, string> {
  return leaseId ? { "x-ms-lease-id": leaseId } : {};
}

function quotaHeaders(quotaGib: number | null): Record<string, string> {
  return quotaGib === null ? {} : { "x-ms-share-quota": String(quotaGib) };
}
