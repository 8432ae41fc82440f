// A SAS for one file, signed in the browser with the account's key. Source: "Create a service SAS".

import type { KeyCredential } from "../credentials";
import { VERSION } from "../requests";
import { pathText } from "./place";

export interface FileSasAsked {
  readonly credential: KeyCredential;
  readonly share: string;
  readonly path: readonly string[];
  readonly validMs: number;
  readonly nowMs: number;
}

/** Return the query of a SAS that permits to read one file, without "?". */
export async function makeFileSas(asked: FileSasAsked): Promise<string> {
  const se = new Date(asked.nowMs + asked.validMs).toISOString().replace(/\.\d+Z$/, "Z");
  const signed = await crypto.subtle.sign("HMAC", asked.credential.signer, new TextEncoder().encode(fileSasStringToSign(asked, se)));
  const sig = btoa(String.fromCharCode(...new Uint8Array(signed)));
  return new URLSearchParams({ sv: VERSION, se, sr: "f", sp: "r", sig }).toString();
}

/** Return what the server signs too: values as they are before percent-encoding. */
export function fileSasStringToSign({ credential, share, path }: Pick<FileSasAsked, "credential" | "share" | "path">, se: string): string {
  const resource = `/file/${credential.account}/${share}/${pathText(path)}`;
  // sp st se resource si sip spr sv, and five headers of the answer
  return ["r", "", se, resource, "", "", "", VERSION, "", "", "", "", ""].join("\n");
}
