// The query of a link that permits something for some time: signed with the account's key, or with a
// key that the service gives to who has a token.

import { DELEGATION_MS_MAX, delegationKey, endAfter, makeDelegatedSas } from "./delegation";
import type { BlobPlace, ContainerPlace } from "./place";
import { makeSas, type Right } from "./sas";

/** Why there is no link: a signature signs no other, and a delegation key does not live so long. */
export type NoLink = "needs_key" | "too_long";

/** Return the query, without "?". Raises: as `send`. */
export async function signedQuery(place: ContainerPlace | BlobPlace, rights: readonly Right[], validMs: number): Promise<{ readonly query: string } | NoLink> {
  const { credential, account, container } = place;
  const named = { container, rights, ...("blob" in place ? { blob: place.blob } : {}) };
  if (credential.kind === "sas") return "needs_key";
  if (credential.kind === "key") return { query: await makeSas({ ...named, credential, validMs, nowMs: Date.now() }) };
  if (validMs > DELEGATION_MS_MAX) return "too_long";
  const expiry = endAfter(Date.now(), validMs);
  return { query: await makeDelegatedSas({ ...named, account, expiry }, await delegationKey(credential, account, expiry)) };
}
