// Where a request of the Blob service goes: who asks, and which account, container, blob.

import type { Credential } from "../credentials";
import { type DataRequest, pathOf, type Query, send } from "../requests";

export interface AccountPlace {
  readonly credential: Credential;
  readonly account: string;
}

export interface ContainerPlace extends AccountPlace {
  readonly container: string;
}

export interface BlobPlace extends ContainerPlace {
  readonly blob: string;
  /** One of both, where a snapshot or a version is meant. */
  readonly snapshot?: string;
  readonly version?: string;
}

/** Return the blob itself, of a place that may name a snapshot or version of it. */
export function withoutState({ credential, account, container, blob }: BlobPlace): BlobPlace {
  return { credential, account, container, blob };
}

export interface Asked {
  readonly query?: Query;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: NonNullable<DataRequest["body"]>;
  readonly signal?: AbortSignal | undefined;
}

export type Method = DataRequest["method"];

export function askAccount(place: AccountPlace, method: Method, asked: Asked): Promise<Response> {
  return ask(place, "/", method, asked);
}

export function askContainer(place: ContainerPlace, method: Method, asked: Asked = {}): Promise<Response> {
  const query = { restype: "container", ...asked.query };
  return ask(place, pathOf(place.container), method, { ...asked, query });
}

export function askBlob(place: BlobPlace, method: Method, asked: Asked = {}): Promise<Response> {
  const query = { ...asked.query, snapshot: place.snapshot, versionid: place.version };
  return ask(place, blobPath(place), method, { ...asked, query });
}

/**
 * Return "/container/blob", each name percent-encoded as a whole.
 *
 * Raises: Error for the names "." and "..": browsers take these out of addresses, even encoded, and
 * the request would reach something else.
 */
export function blobPath(place: BlobPlace): string {
  if (/^\.{1,2}$/.test(place.blob)) throw new Error(`browsers cannot address a blob named ${place.blob}`);
  return pathOf(place.container, place.blob);
}

async function ask(place: AccountPlace, path: string, method: Method, asked: Asked): Promise<Response> {
  const { signal, ...rest } = asked;
  const { credential, account } = place;
  const answer = await send(credential, { method, service: "blob", account, path, ...rest, ...(signal ? { signal } : {}) });
  // What a write answers is in its headers. Its body is read to the end, so that the connection is free.
  if (method !== "GET") await answer.arrayBuffer();
  return answer;
}
