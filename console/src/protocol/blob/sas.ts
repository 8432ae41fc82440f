// A service SAS, signed in the browser with the account's key. Source: "Create a service SAS".

import type { KeyCredential } from "../credentials";
import { VERSION } from "../requests";

/** The rights in the order in which the service wants their letters. */
export const RIGHTS = ["r", "a", "c", "w", "d", "x", "l", "t", "f", "i"] as const;
export type Right = (typeof RIGHTS)[number];

export const CONTAINER_RIGHTS: readonly Right[] = RIGHTS;
export const BLOB_RIGHTS: readonly Right[] = ["r", "a", "c", "w", "d", "x", "t", "i"];

export interface SasAsked {
  readonly credential: KeyCredential;
  readonly container: string;
  /** Without it, the SAS is for the container and all that is in it. */
  readonly blob?: string;
  readonly rights: readonly Right[];
  readonly validMs: number;
  readonly nowMs: number;
}

/** Return the query of a SAS, without "?". */
export async function makeSas(asked: SasAsked): Promise<string> {
  const sp = RIGHTS.filter((one) => asked.rights.includes(one)).join("");
  const se = new Date(asked.nowMs + asked.validMs).toISOString().replace(/\.\d+Z$/, "Z");
  const sr = asked.blob === undefined ? "c" : "b";
  const signed = await crypto.subtle.sign("HMAC", asked.credential.signer, new TextEncoder().encode(sasStringToSign(asked, sp, se, sr)));
  const sig = btoa(String.fromCharCode(...new Uint8Array(signed)));
  return new URLSearchParams({ sv: VERSION, se, sr, sp, sig }).toString();
}

/** Return what the server signs too: values as they are before percent-encoding. */
export function sasStringToSign(asked: Pick<SasAsked, "credential" | "container" | "blob">, sp: string, se: string, sr: string): string {
  const name = asked.blob === undefined ? asked.container : `${asked.container}/${asked.blob}`;
  const resource = `/blob/${asked.credential.account}/${name}`;
  // sp st se resource si sip spr sv sr snapshot scope, and five headers of the answer
  return [sp, "", se, resource, "", "", "", VERSION, sr, "", "", "", "", "", "", ""].join("\n");
}

const UNITS: Readonly<Record<string, number>> = { min: 60, m: 60, h: 3600, d: 86_400 };

/** Return milliseconds of "30 min", "1 h" or "7 d"; null if it is no such time. */
export function readDuration(text: string): number | null {
  const found = /^\s*(\d{1,6})\s*(min|m|h|d)?[a-z]*\s*$/i.exec(text);
  const value = Number(found?.[1] ?? 0);
  if (!found || value === 0) return null;
  return value * (UNITS[(found[2] ?? "h").toLowerCase()] ?? 3600) * 1000;
}
