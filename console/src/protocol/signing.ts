// SharedKey of all four services, in the browser. Here: the string to sign, and its signature. Not
// here: which requests there are. Source: "Authorize with Shared Key".
//
// A trap: what is signed must be what is sent. `URL` rewrites some characters (' becomes %27 in a
// query), so the path and the query are taken from a URL, never from the text that it was made of.
//
// All strings to sign are byte strings: one character is one byte of the request.

export interface SignedParts {
  readonly method: string;
  readonly url: URL;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly contentLength: number;
}

/** Tables sign less than the other services. */
export type Scheme = "full" | "table";

const SIGNED_AFTER_DATE = ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"];

/** Return the key for `authorization`. Raises: Error if `base64` is not the text of a key. */
export async function importKey(base64: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", bytesOf(atob(base64)), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

export async function authorization(
  signer: CryptoKey,
  account: string,
  scheme: Scheme,
  parts: SignedParts,
): Promise<string> {
  const signature = await crypto.subtle.sign("HMAC", signer, bytesOf(stringToSign(account, scheme, parts)));
  return `SharedKey ${account}:${btoa(String.fromCharCode(...new Uint8Array(signature)))}`;
}

/** Return the string that the server computes too, as bytes. */
export function stringToSign(account: string, scheme: Scheme, parts: SignedParts): string {
  const { method, url, headers } = parts;
  const get = (name: string): string => headers.get(name) ?? "";
  const resource = `/${account}${url.pathname}`;
  if (scheme === "table") {
    const head = [method, get("content-md5"), get("content-type"), get("x-ms-date")];
    return `${head.join("\n")}\n${resource}${compOf(url.search)}`;
  }
  const head = [
    method,
    get("content-encoding"),
    get("content-language"),
    parts.contentLength > 0 ? String(parts.contentLength) : "",
    get("content-md5"),
    get("content-type"),
    "", // Date: x-ms-date is sent instead, since a page may not set Date
    ...SIGNED_AFTER_DATE.map(get),
  ];
  return `${head.join("\n")}\n${canonicalHeaders(headers)}${resource}${canonicalQuery(url.search)}`;
}

function canonicalHeaders(headers: ReadonlyMap<string, string>): string {
  return [...headers]
    .filter(([name]) => name.startsWith("x-ms-"))
    .sort(([one], [other]) => byBytes(one, other))
    .map(([name, value]) => `${name}:${value.trim()}\n`)
    .join("");
}

function canonicalQuery(search: string): string {
  const values = new Map<string, string[]>();
  for (const [name, value] of parameters(search)) values.set(name, [...(values.get(name) ?? []), value]);
  return [...values]
    .sort(([one], [other]) => byBytes(one, other))
    .map(([name, all]) => `\n${name}:${all.sort(byBytes).join(",")}`)
    .join("");
}

function compOf(search: string): string {
  const found = parameters(search).find(([name]) => name === "comp");
  return found ? `?comp=${found[1]}` : "";
}

function parameters(search: string): [string, string][] {
  const pieces = search.replace(/^\?/, "").split("&").filter(Boolean);
  return pieces.map((piece) => {
    const at = piece.indexOf("=");
    const name = percentDecoded(at < 0 ? piece : piece.slice(0, at));
    const value = percentDecoded(at < 0 ? "" : piece.slice(at + 1));
    return [isAscii(name) ? name.toLowerCase() : name, value];
  });
}

/** Percent-decoding to bytes; what is no escape stays as it is. */
function percentDecoded(text: string): string {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

function isAscii(text: string): boolean {
  return [...text].every((char) => char.charCodeAt(0) < 128);
}

function byBytes(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function bytesOf(binary: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}
