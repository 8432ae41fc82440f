// Directories: what is in one, making and deleting. Source: "Operations on directories".

import { ServiceError } from "../errors";
import { childOf, childrenOf, nameOf, parseXml, textOf } from "../shared/xml";
import { type NodeProperties, propertiesOf } from "./nodes";
import { askDirectory, type PathPlace } from "./place";

export const PAGE_NAMES = 1000;

export interface NodeRow {
  readonly isDirectory: boolean;
  readonly name: string;
  readonly sizeBytes: number;
  /** The last write; RFC 3339, "" where the service does not tell. */
  readonly written: string;
  readonly attributes: string;
}

export interface DirectoryPage {
  readonly rows: readonly NodeRow[];
  /** For the next page; "" after the last. */
  readonly next: string;
}

export interface DirectoryAsked {
  readonly prefix: string;
  readonly marker: string;
  readonly maxresults?: number;
}

export async function listDirectory(place: PathPlace, asked: DirectoryAsked, signal?: AbortSignal): Promise<DirectoryPage> {
  const query = {
    comp: "list",
    include: "Timestamps,Attributes",
    marker: asked.marker || undefined,
    maxresults: asked.maxresults ?? PAGE_NAMES,
    prefix: asked.prefix || undefined,
  };
  return readDirectoryPage(await (await askDirectory(place, "GET", { query, signal })).text());
}

export function readDirectoryPage(xml: string): DirectoryPage {
  const root = parseXml(xml);
  const entries = [...(childOf(root, "Entries")?.children ?? [])];
  return { rows: entries.map(nodeRow), next: textOf(root, "NextMarker") };
}

function nodeRow(element: Element): NodeRow {
  const [properties = null] = childrenOf(element, "Properties");
  return {
    isDirectory: element.nodeName === "Directory",
    name: nameOf(element),
    sizeBytes: Number(textOf(properties, "Content-Length") || 0),
    written: textOf(properties, "LastWriteTime"),
    attributes: textOf(element, "Attributes"),
  };
}

export async function createDirectory(place: PathPlace): Promise<void> {
  await askDirectory(place, "PUT");
}

/** Delete a directory. Raises: ServiceError DirectoryNotEmpty. */
export async function deleteDirectory(place: PathPlace): Promise<void> {
  await askDirectory(place, "DELETE");
}

export async function directoryProperties(place: PathPlace, signal?: AbortSignal): Promise<NodeProperties> {
  return propertiesOf((await askDirectory(place, "HEAD", { signal })).headers);
}

/** Return whether a path leads to a directory. Who may only list is not told, so it is tried as one. */
export async function isDirectory(place: PathPlace, signal?: AbortSignal): Promise<boolean> {
  if (place.path.length === 0) return true;
  try {
    await directoryProperties(place, signal);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return false;
    if (error instanceof ServiceError && error.status === 403) return true;
    throw error;
  }
}
