// What a shared access signature permits, read from its own parameters. Source: "Create an account
// SAS", "Create a service SAS". The service decides; this only says beforehand what is missing.

import type { Credential, SasCredential, Service } from "./credentials";

/** A letter of `sp`, or "service": the signature is for another service. */
export type Missing = string;

/** Return the first of `rights` (letters of `sp`) that a credential lacks for a service; null: none. */
export function missingRight(credential: Credential, service: Service, rights: string): Missing | null {
  if (credential.kind !== "sas") return null;
  if (!isFor(credential, service)) return "service";
  const granted = parameter(credential, "sp");
  if (granted === null) return null; // a stored policy says it, and only the service knows that
  return [...rights].find((one) => !granted.includes(one)) ?? null;
}

/** Letters of a service SAS, the resource type of an account SAS, and the letters of that. */
export type Needed = readonly [ofService: string, resource: string, ofAccount: string];

/** Return what a credential lacks: "key", or letters of which one would do. Null: nothing is known to be missing. */
export function lackedLetters(credential: Credential, [ofService, resource, ofAccount]: Needed): string | null {
  if (credential.kind !== "sas") return null;
  const rights = parameter(credential, "sp");
  const isAccount = isAccountSas(credential);
  const letters = isAccount ? ofAccount : ofService;
  if (!letters) return "key";
  if (isAccount && !(parameter(credential, "srt") ?? "").includes(resource)) return letters;
  if (rights === null) return null;
  return [...letters].some((letter) => rights.includes(letter)) ? null : letters;
}

/** Return whether a signature is one of a whole account. */
export function isAccountSas(credential: SasCredential): boolean {
  return parameter(credential, "ss") !== null;
}

/** Return the only queue, table or container that a credential is for; null: it is for all. */
export function onlyName(credential: Credential): string | null {
  if (credential.kind !== "sas" || isAccountSas(credential)) return null;
  const segment = credential.path.split("/")[1] ?? "";
  return parameter(credential, "tn") ?? (decodeURIComponent(segment).replace(/\(.*$/, "") || null);
}

function isFor(credential: SasCredential, service: Service): boolean {
  const services = parameter(credential, "ss");
  return services === null ? credential.service === service : services.includes(service.charAt(0));
}

function parameter(credential: SasCredential, name: string): string | null {
  return new URLSearchParams(credential.token).get(name);
}
