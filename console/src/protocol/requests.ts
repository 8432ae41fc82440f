// One way to send a request: to the four services beneath this origin, and to the read API. Here:
// the URL, the headers that every request has, the signature. Not here: which operations there are.

import type { Credential, Service } from "./credentials";
import { errorOf, NoAnswer } from "./errors";
import { authorization, type Scheme } from "./signing";

export const VERSION = "2025-11-05";
export const API_PREFIX = "/.strongroom/console/v1/";

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface DataRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE" | "MERGE" | "PATCH";
  readonly service: Service;
  readonly account: string;
  /** After the account, percent-encoded (`pathOf`): "" or "/container/blob". */
  readonly path: string;
  readonly query?: Query;
  /** Names in any case. `x-ms-date`, `x-ms-version` and the signature are added. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Blob | Uint8Array<ArrayBuffer> | string;
  readonly signal?: AbortSignal;
}

/** Return "/a/b" of names, each percent-encoded as a whole: a "/" inside a name becomes %2F. */
export function pathOf(...names: readonly string[]): string {
  return names.map((name) => `/${encodeURIComponent(name)}`).join("");
}

/** Return "?a=1&b=2"; parameters without a value are left out. */
export function queryOf(query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value ?? "")}`);
  return text.length ? `?${text.join("&")}` : "";
}

/**
 * Send a request to a service. Return its answer, whose status is below 400.
 *
 * Raises: ServiceError for any other answer, NoAnswer without one, AbortError if `signal` fired.
 */
export async function send(credential: Credential, request: DataRequest): Promise<Response> {
  const url = dataUrl(credential, request);
  const body = bodyOf(request.body);
  const headers = new Map([...Object.entries(request.headers ?? {})].map(([name, value]) => [name.toLowerCase(), value]));
  headers.set("x-ms-version", VERSION);
  const scheme = request.service === "table" ? "table" : "full";
  const signed = await signedHeaders(credential, request.method, url, headers, body?.size ?? 0, scheme);
  return fetched(url, { method: request.method, headers: signed, body: body ?? null, signal: request.signal ?? null });
}

/** Send a request to the read API, `path` without its prefix. Raises: as `send`. */
export async function askApi<Document>(
  credential: Credential | null,
  path: string,
  query: Query = {},
  signal?: AbortSignal,
): Promise<Document> {
  const url = new URL(`${API_PREFIX}${path}${queryOf(query)}`, location.origin);
  const plain = new Map([["x-ms-version", VERSION]]);
  const headers = credential ? await signedHeaders(credential, "GET", url, plain, 0, "full") : plain;
  const answer = await fetched(url, { method: "GET", headers, signal: signal ?? null });
  return (await answer.json()) as Document;
}

/** Post a document to the read API; unsigned without a credential. Raises: as `send`. */
export async function postApi<Document>(path: string, content: unknown, credential: Credential | null = null, query: Query = {}): Promise<Document> {
  const url = new URL(`${API_PREFIX}${path}${queryOf(query)}`, location.origin);
  const plain = new Map([["x-ms-version", VERSION], ["content-type", "application/json"]]);
  const body = new Blob([JSON.stringify(content)]);
  const headers = credential ? await signedHeaders(credential, "POST", url, plain, body.size, "full") : plain;
  const answer = await fetched(url, { method: "POST", headers, body, signal: null });
  return (await answer.json()) as Document;
}

/**
 * Ask an endpoint that every port of the server has, below `/.strongroom/`. It needs no signature.
 *
 * Raises: as `send`.
 */
export async function askOwn<Document>(method: "GET" | "POST" | "PUT" | "DELETE", name: string, content?: unknown, signal?: AbortSignal): Promise<Document> {
  const url = new URL(`/.strongroom/${name}`, location.origin);
  const body = content === undefined ? null : new Blob([JSON.stringify(content)]);
  const answer = await fetched(url, { method, headers: new Map(), body, signal: signal ?? null });
  return (await answer.json()) as Document;
}

export interface ApiAct {
  readonly path: string;
  readonly query?: Query;
  /** What was seen, for If-Match; without it the act is done whatever there is now. */
  readonly state?: string;
}

/** Let the read API do something: a POST without a body. Raises: as `send`. */
export async function actApi<Document>(credential: Credential, act: ApiAct): Promise<Document> {
  const url = new URL(`${API_PREFIX}${act.path}${queryOf(act.query)}`, location.origin);
  const plain = new Map([["x-ms-version", VERSION]]);
  if (act.state) plain.set("if-match", `"${act.state}"`);
  const headers = await signedHeaders(credential, "POST", url, plain, 0, "full");
  const answer = await fetched(url, { method: "POST", headers, signal: null });
  return (await answer.json()) as Document;
}

// An account of the address may have any characters, and must not lead out of its service.
export function dataUrl(credential: Credential, request: Pick<DataRequest, "service" | "account" | "path" | "query">): URL {
  const path = `/${request.service}${pathOf(request.account)}${request.path}`;
  const url = new URL(`${path}${queryOf(request.query)}`, location.origin);
  if (url.pathname !== path) throw new Error(`browsers cannot address ${path}`);
  if (credential.kind === "sas") url.search += `${url.search ? "&" : "?"}${credential.token}`;
  return url;
}

// A Blob's own type would become a Content-Type that was not signed, and so would that of a text.
function bodyOf(body: DataRequest["body"]): Blob | null {
  if (body === undefined) return null;
  return body instanceof Blob ? body.slice(0, body.size, "") : new Blob([body]);
}

async function signedHeaders(
  credential: Credential,
  method: string,
  url: URL,
  headers: Map<string, string>,
  contentLength: number,
  scheme: Scheme,
): Promise<Map<string, string>> {
  if (credential.kind === "sas") return headers;
  headers.set("x-ms-date", new Date().toUTCString());
  const value =
    credential.kind === "bearer"
      ? `Bearer ${credential.token}`
      : await authorization(credential.signer, credential.account, scheme, { method, url, headers, contentLength });
  return headers.set("authorization", value);
}

/** Whether a request changes nothing: only then is there an answer that a cache could keep. */
function isReading(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

interface Sent {
  readonly method: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body?: Blob | null;
  readonly signal: AbortSignal | null;
}

async function fetched(url: URL, sent: Sent): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, {
      method: sent.method,
      headers: [...sent.headers].map(([name, value]): [string, string] => [name, value]),
      body: sent.body ?? null,
      signal: sent.signal,
      // With "no-store" browsers add Cache-Control, which a write would store as the blob's own.
      cache: isReading(sent.method) ? "no-store" : "default",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (sent.signal?.aborted) throw error;
    throw new NoAnswer(error instanceof Error ? error.message : String(error));
  }
  if (response.status >= 400) throw await errorOf(response);
  return response;
}
