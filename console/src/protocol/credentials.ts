// Who signs in, as the page keeps it: in memory only. Not here: the key's text (state/key_text.ts).

export type Service = "blob" | "queue" | "table" | "file";

export const SERVICES: readonly Service[] = ["blob", "queue", "table", "file"];

export interface KeyCredential {
  readonly kind: "key";
  readonly account: string;
  /** An HMAC-SHA256 key that cannot be extracted. */
  readonly signer: CryptoKey;
}

export interface SasCredential {
  readonly kind: "sas";
  readonly account: string;
  readonly service: Service;
  /** The path after the account, as it was in the URL: "" for the account, else "/container/...". */
  readonly path: string;
  /** The query, without "?": it holds the signature, so it goes into no address and no text. */
  readonly token: string;
}

export interface BearerCredential {
  readonly kind: "bearer";
  readonly token: string;
}

export type Credential = KeyCredential | SasCredential | BearerCredential;
export type CredentialKind = Credential["kind"];
