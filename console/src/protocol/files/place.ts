// Where a request of the File service goes: who asks, and which share, directory or file.

import type { Credential } from "../credentials";
import { type DataRequest, pathOf, type Query, send } from "../requests";

export interface FileAccount {
  readonly credential: Credential;
  readonly account: string;
}

export interface SharePlace extends FileAccount {
  readonly share: string;
  /** The time that names a snapshot of the share; without it, the share as it is now. */
  readonly snapshot?: string;
}

/** A directory or a file. */
export interface PathPlace extends SharePlace {
  /** Names from the share's root down; none: the root directory. */
  readonly path: readonly string[];
}

export type Method = DataRequest["method"];

export interface Asked {
  readonly query?: Query;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: NonNullable<DataRequest["body"]>;
  readonly signal?: AbortSignal | undefined;
}

export function askFileAccount(place: FileAccount, method: Method, asked: Asked): Promise<Response> {
  return ask(place, "/", method, asked);
}

export function askShare(place: SharePlace, method: Method, asked: Asked = {}): Promise<Response> {
  const query = { restype: "share", ...asked.query, sharesnapshot: place.snapshot };
  return ask(place, pathOf(place.share), method, { ...asked, query });
}

export function askDirectory(place: PathPlace, method: Method, asked: Asked = {}): Promise<Response> {
  return askFile(place, method, { ...asked, query: { restype: "directory", ...asked.query } });
}

export function askFile(place: PathPlace, method: Method, asked: Asked = {}): Promise<Response> {
  const query = { ...asked.query, sharesnapshot: place.snapshot };
  const headers = { ...asked.headers, ...(endsWithDot(place.path) ? { "x-ms-allow-trailing-dot": "true" } : {}) };
  return ask(place, filePath(place), method, { ...asked, query, headers });
}

/**
 * Return "/share/directory/file".
 *
 * Raises: Error for the names "." and "..": browsers take these out of addresses, even encoded, and
 * the request would reach something else.
 */
export function filePath({ share, path }: PathPlace): string {
  const dots = path.find((name) => /^\.{1,2}$/.test(name));
  if (dots !== undefined) throw new Error(`browsers cannot address a file named ${dots}`);
  return pathOf(share, ...path);
}

/** Whether the service must be told that dots at the end of names count. */
export function endsWithDot(path: readonly string[]): boolean {
  return path.some((name) => name.endsWith("."));
}

/** The path as people write it. */
export function pathText(path: readonly string[]): string {
  return path.join("/");
}

/** Return the names of a path that a person wrote: slashes of either kind part them. */
export function namesOf(text: string): string[] {
  return text.split(/[\\/]/).filter(Boolean);
}

export function shareOf({ credential, account, share, snapshot }: SharePlace): SharePlace {
  return { credential, account, share, ...(snapshot ? { snapshot } : {}) };
}

export function childOf(place: PathPlace, name: string): PathPlace {
  return { ...place, path: [...place.path, name] };
}

export function parentOf(place: PathPlace): PathPlace {
  return { ...place, path: place.path.slice(0, -1) };
}

async function ask(place: FileAccount, path: string, method: Method, asked: Asked): Promise<Response> {
  const { signal, headers, ...rest } = asked;
  const { credential, account } = place;
  // A token's request must say that it reads past the permissions of single files.
  const intent: Record<string, string> = credential.kind === "bearer" ? { "x-ms-file-request-intent": "backup" } : {};
  const answer = await send(credential, { method, service: "file", account, path, ...rest, headers: { ...headers, ...intent }, ...(signal ? { signal } : {}) });
  // What a write answers is in its headers. Its body is read to the end, so that the connection is free.
  if (method !== "GET") await answer.arrayBuffer();
  return answer;
}
