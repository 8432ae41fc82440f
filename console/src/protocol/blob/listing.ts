// Lists of the Blob service, page by page: containers, blobs, folders, blobs by their tags.

import { type Pairs, timeOf } from "../shared/headers";
import { childOf, childrenOf, nameOf, parseXml, textOf } from "../shared/xml";
import { type AccountPlace, askAccount, askContainer, type ContainerPlace } from "./place";

export const PAGE_ROWS = 1000;

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** The marker of the page after this one; "" on the last. */
  readonly next: string;
}

export interface ContainerRow {
  readonly name: string;
  readonly modified: string;
  readonly leaseState: string;
  /** Who may read without a signature: "container", "blob", or "" for nobody. */
  readonly access: string;
  readonly hasPolicy: boolean;
  readonly hasHold: boolean;
  /** Names the deleted container where one is listed; else "". */
  readonly deletedVersion: string;
  readonly remainingDays: string;
}

export interface BlobRow {
  /** A folder's name ends with the delimiter. */
  readonly isFolder: boolean;
  readonly name: string;
  readonly snapshot: string;
  readonly version: string;
  readonly isCurrent: boolean;
  readonly isDeleted: boolean;
  /** "" where there is none: of folders, and of blobs found by tags. */
  readonly modified: string;
  readonly sizeBytes: number;
  readonly type: string;
  readonly contentType: string;
  readonly tier: string;
  readonly leaseState: string;
  readonly tags: Pairs;
}

export interface ListAsked {
  readonly prefix?: string;
  readonly marker?: string;
  readonly signal?: AbortSignal;
}

export async function listContainers(place: AccountPlace, asked: ListAsked & { readonly deleted: boolean }): Promise<Page<ContainerRow>> {
  const include = asked.deleted ? "deleted" : undefined;
  const query = { comp: "list", include, maxresults: PAGE_ROWS, prefix: asked.prefix || undefined, marker: asked.marker || undefined };
  const root = parseXml(await (await askAccount(place, "GET", { query, signal: asked.signal })).text());
  return { rows: childrenOf(childOf(root, "Containers"), "Container").map(containerRow), next: textOf(root, "NextMarker") };
}

function containerRow(element: Element): ContainerRow {
  const properties = childOf(element, "Properties");
  return {
    name: nameOf(element),
    modified: timeOf(textOf(properties, "Last-Modified")),
    leaseState: textOf(properties, "LeaseState"),
    access: textOf(properties, "PublicAccess"),
    hasPolicy: textOf(properties, "HasImmutabilityPolicy") === "true",
    hasHold: textOf(properties, "HasLegalHold") === "true",
    deletedVersion: textOf(element, "Deleted") === "true" ? textOf(element, "Version") : "",
    remainingDays: textOf(properties, "RemainingRetentionDays"),
  };
}

export interface BlobsAsked extends ListAsked {
  /** "/" lists folders; without it all blobs are listed flat. */
  readonly delimiter?: string;
  /** What else is wanted, joined by commas: "deleted,tags,versions,snapshots". */
  readonly include?: string;
  readonly rows?: number;
}

export async function listBlobs(place: ContainerPlace, asked: BlobsAsked): Promise<Page<BlobRow>> {
  const query = {
    comp: "list",
    delimiter: asked.delimiter || undefined,
    include: asked.include || undefined,
    marker: asked.marker || undefined,
    maxresults: asked.rows ?? PAGE_ROWS,
    prefix: asked.prefix || undefined,
  };
  return blobPage(await askContainer(place, "GET", { query, signal: asked.signal }));
}

/** Find blobs by an expression: `"status" = 'done' AND "year" >= '2024'`. */
export async function findByTags(place: ContainerPlace, where: string, asked: ListAsked): Promise<Page<BlobRow>> {
  const query = { comp: "blobs", where, maxresults: PAGE_ROWS, marker: asked.marker || undefined };
  return blobPage(await askContainer(place, "GET", { query, signal: asked.signal }));
}

async function blobPage(answer: Response): Promise<Page<BlobRow>> {
  return readBlobPage(await answer.text());
}

export function readBlobPage(xml: string): Page<BlobRow> {
  const root = parseXml(xml);
  const rows = [...(childOf(root, "Blobs")?.children ?? [])].map(blobRow);
  return { rows, next: textOf(root, "NextMarker") };
}

function blobRow(element: Element): BlobRow {
  const properties = childOf(element, "Properties");
  return {
    isFolder: element.nodeName === "BlobPrefix",
    name: nameOf(element),
    snapshot: textOf(element, "Snapshot"),
    version: textOf(element, "VersionId"),
    isCurrent: textOf(element, "IsCurrentVersion") === "true",
    isDeleted: textOf(element, "Deleted") === "true",
    modified: timeOf(textOf(properties, "Last-Modified")),
    sizeBytes: Number(textOf(properties, "Content-Length") || 0),
    type: textOf(properties, "BlobType"),
    contentType: textOf(properties, "Content-Type"),
    tier: textOf(properties, "AccessTier"),
    leaseState: textOf(properties, "LeaseState"),
    tags: tagsOf(childOf(element, "Tags")),
  };
}

export function tagsOf(tags: Element | null): Pairs {
  return childrenOf(childOf(tags, "TagSet"), "Tag").map((tag): [string, string] => [textOf(tag, "Key"), textOf(tag, "Value")]);
}
