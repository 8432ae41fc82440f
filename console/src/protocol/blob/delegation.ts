// A user delegation SAS: signed in the browser with a key that the service gives to who has a token.
// Source: "Get User Delegation Key", "Create a user delegation SAS".

import type { BearerCredential } from "../credentials";
import { send, VERSION } from "../requests";
import { parseXml, textOf } from "../shared/xml";
import { importKey } from "../signing";
import { type Right, RIGHTS } from "./sas";

/** A delegation key lives no longer, nor does what it signs. */
export const DELEGATION_MS_MAX = 7 * 86_400_000;

export interface DelegationKey {
  readonly oid: string;
  readonly tid: string;
  readonly start: string;
  readonly expiry: string;
  readonly service: string;
  readonly version: string;
  /** An HMAC-SHA256 key that cannot be extracted. */
  readonly signer: CryptoKey;
}

export interface DelegatedSasAsked {
  readonly account: string;
  readonly container: string;
  /** Without it, the SAS is for the container and all that is in it. */
  readonly blob?: string;
  readonly rights: readonly Right[];
  /** Its end, in RFC 3339, whole seconds. */
  readonly expiry: string;
}

/** Return the end of what is valid so long, as tokens write it. */
export function endAfter(nowMs: number, validMs: number): string {
  return new Date(nowMs + validMs).toISOString().replace(/\.\d+Z$/, "Z");
}

/** Ask the Blob service for a key that is valid from now on. Raises: as `send`. */
export async function delegationKey(credential: BearerCredential, account: string, expiry: string): Promise<DelegationKey> {
  const answer = await send(credential, {
    method: "POST", service: "blob", account, path: "/", query: { restype: "service", comp: "userdelegationkey" },
    headers: { "content-type": "application/xml" },
    body: `<?xml version="1.0" encoding="utf-8"?><KeyInfo><Expiry>${expiry}</Expiry></KeyInfo>`,
  });
  const root = parseXml(await answer.text());
  return {
    oid: textOf(root, "SignedOid"),
    tid: textOf(root, "SignedTid"),
    start: textOf(root, "SignedStart"),
    expiry: textOf(root, "SignedExpiry"),
    service: textOf(root, "SignedService"),
    version: textOf(root, "SignedVersion"),
    signer: await importKey(textOf(root, "Value")),
  };
}

/** Return the query of a SAS, without "?". */
export async function makeDelegatedSas(asked: DelegatedSasAsked, key: DelegationKey): Promise<string> {
  const sp = RIGHTS.filter((one) => asked.rights.includes(one)).join("");
  const sr = asked.blob === undefined ? "c" : "b";
  const signed = await crypto.subtle.sign("HMAC", key.signer, new TextEncoder().encode(delegatedStringToSign(asked, key, sp, sr)));
  const sig = btoa(String.fromCharCode(...new Uint8Array(signed)));
  const ofKey = { skoid: key.oid, sktid: key.tid, skt: key.start, ske: key.expiry, sks: key.service, skv: key.version };
  return new URLSearchParams({ sv: VERSION, se: asked.expiry, sr, sp, ...ofKey, sig }).toString();
}

/** Return what the server signs too: values as they are before percent-encoding. */
export function delegatedStringToSign(asked: DelegatedSasAsked, key: Omit<DelegationKey, "signer">, sp: string, sr: string): string {
  const name = asked.blob === undefined ? asked.container : `${asked.container}/${asked.blob}`;
  const ofKey = [key.oid, key.tid, key.start, key.expiry, key.service, key.version];
  // Behind the key: saoid suoid scid skdutid sduoid sip spr.
  const unused = ["", "", "", "", "", "", ""];
  // Behind sr: the snapshot, the scope, and five headers of the answer.
  return [sp, "", asked.expiry, `/blob/${asked.account}/${name}`, ...ofKey, ...unused, VERSION, sr, "", "", "", "", "", "", ""].join("\n");
}
