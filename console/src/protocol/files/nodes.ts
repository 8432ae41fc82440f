// One file or directory: what a read says of it, and the acts on it. Not here: a file's bytes
// (upload.ts, protocol/across/download.ts). Source: "Operations on files".

import { pathOf } from "../requests";
import { metadataOf, type Pairs, timeOf } from "../shared/headers";
import { askDirectory, askFile, endsWithDot, filePath, type PathPlace } from "./place";
import { leaseHeaders, metadataHeaders } from "./shares";

/** What SMB and REST both know of a file or directory. */
export interface SmbProperties {
  /** Names with " | " between them. */
  readonly attributes: string;
  /** RFC 3339, with seven digits. */
  readonly creation: string;
  readonly lastWrite: string;
  readonly change: string;
  readonly permissionKey: string;
  readonly id: string;
  readonly parentId: string;
}

export interface ContentHeaders {
  readonly contentType: string;
  readonly encoding: string;
  readonly language: string;
  readonly disposition: string;
  readonly cacheControl: string;
  readonly md5: string;
}

export interface NodeProperties {
  readonly sizeBytes: number;
  readonly etag: string;
  readonly modified: string;
  readonly content: ContentHeaders;
  readonly leaseState: string;
  readonly leaseDuration: string;
  readonly metadata: Pairs;
  readonly smb: SmbProperties;
  readonly copyStatus: string;
  readonly copySource: string;
}

export async function fileProperties(place: PathPlace, signal?: AbortSignal): Promise<NodeProperties> {
  return propertiesOf((await askFile(place, "HEAD", { signal })).headers);
}

export function propertiesOf(headers: Headers): NodeProperties {
  const get = (name: string): string => headers.get(name) ?? "";
  return {
    sizeBytes: Number(get("content-length") || 0),
    etag: get("etag"),
    modified: timeOf(get("last-modified")),
    content: {
      contentType: get("content-type"),
      encoding: get("content-encoding"),
      language: get("content-language"),
      disposition: get("content-disposition"),
      cacheControl: get("cache-control"),
      md5: get("content-md5"),
    },
    leaseState: get("x-ms-lease-state"),
    leaseDuration: get("x-ms-lease-duration"),
    metadata: metadataOf(headers),
    smb: {
      attributes: get("x-ms-file-attributes"),
      creation: get("x-ms-file-creation-time"),
      lastWrite: get("x-ms-file-last-write-time"),
      change: get("x-ms-file-change-time"),
      permissionKey: get("x-ms-file-permission-key"),
      id: get("x-ms-file-id"),
      parentId: get("x-ms-file-parent-id"),
    },
    copyStatus: get("x-ms-copy-status"),
    copySource: get("x-ms-copy-source"),
  };
}

/** Make a file of zeros. */
export async function createFile(place: PathPlace, sizeBytes: number, headers: Readonly<Record<string, string>>): Promise<void> {
  const needed = { "x-ms-type": "file", "x-ms-content-length": String(sizeBytes) };
  await askFile(place, "PUT", { headers: { ...headers, ...needed } });
}

export async function putRange(place: PathPlace, offset: number, bytes: Uint8Array<ArrayBuffer>, signal?: AbortSignal): Promise<void> {
  const headers = { "x-ms-range": `bytes=${offset}-${offset + bytes.length - 1}`, "x-ms-write": "update" };
  await askFile(place, "PUT", { query: { comp: "range" }, headers, body: bytes, signal });
}

export async function deleteFile(place: PathPlace, leaseId?: string): Promise<void> {
  await askFile(place, "DELETE", { headers: leaseHeaders(leaseId) });
}

/** Replace all six content headers: the service knows no other way. */
export async function setContentHeaders(place: PathPlace, content: ContentHeaders, leaseId?: string): Promise<void> {
  const named = {
    "x-ms-content-type": content.contentType,
    "x-ms-content-encoding": content.encoding,
    "x-ms-content-language": content.language,
    "x-ms-content-disposition": content.disposition,
    "x-ms-cache-control": content.cacheControl,
    "x-ms-content-md5": content.md5,
  };
  const headers = { ...Object.fromEntries(Object.entries(named).filter(([, value]) => value)), ...leaseHeaders(leaseId) };
  await askFile(place, "PUT", { query: { comp: "properties" }, headers });
}

/** Set attributes and times; one that is "" stays as it is. */
export async function setSmbProperties(
  place: PathPlace,
  isDirectory: boolean,
  smb: Pick<SmbProperties, "attributes" | "creation" | "lastWrite">,
  leaseId?: string,
): Promise<void> {
  const headers = {
    "x-ms-file-attributes": smb.attributes || "preserve",
    "x-ms-file-creation-time": smb.creation || "preserve",
    "x-ms-file-last-write-time": smb.lastWrite || "preserve",
    ...leaseHeaders(leaseId),
  };
  await (isDirectory ? askDirectory : askFile)(place, "PUT", { query: { comp: "properties" }, headers });
}

/** Replace all metadata. */
export async function setNodeMetadata(place: PathPlace, isDirectory: boolean, metadata: Pairs, leaseId?: string): Promise<void> {
  const headers = { ...metadataHeaders(metadata), ...leaseHeaders(leaseId) };
  await (isDirectory ? askDirectory : askFile)(place, "PUT", { query: { comp: "metadata" }, headers });
}

export interface RenameOptions {
  readonly isDirectory?: boolean;
  /** Whether a file that has the name is replaced. */
  readonly replaces?: boolean;
  readonly sourceLeaseId?: string | undefined;
  readonly targetLeaseId?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Give a file or directory another path in its share. Raises: ServiceError ResourceAlreadyExists. */
export async function rename(source: PathPlace, target: PathPlace, options: RenameOptions = {}): Promise<void> {
  const { isDirectory = false, replaces = false, sourceLeaseId, targetLeaseId } = options;
  const headers: Record<string, string> = { ...options.headers, "x-ms-file-rename-source": renameSource(source) };
  if (replaces) headers["x-ms-file-rename-replace-if-exists"] = "true";
  if (sourceLeaseId) headers["x-ms-source-lease-id"] = sourceLeaseId;
  if (targetLeaseId) headers["x-ms-destination-lease-id"] = targetLeaseId;
  if (endsWithDot(source.path)) headers["x-ms-source-allow-trailing-dot"] = "true";
  await (isDirectory ? askDirectory : askFile)(target, "PUT", { query: { comp: "rename" }, headers });
}

/** The source is named under the host of the request, which is this page's own. */
function renameSource(source: PathPlace): string {
  return `${location.origin}/file${pathOf(source.account)}${filePath(source)}`;
}
