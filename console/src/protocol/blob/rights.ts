// What a shared access signature permits, as far as its own text says. A stored policy may hold the
// rest; then nothing is known here, and the service answers.

import type { Credential, SasCredential } from "../credentials";
import { lackedLetters } from "../rights";

/** Letters of a service SAS of which one is enough ("": never by one), and those of an account SAS. */
const ACTS = {
  listContainers: ["", "s", "l"],
  createContainer: ["", "c", "cw"],
  deleteContainer: ["", "c", "d"],
  restoreContainer: ["", "c", "w"],
  readContainer: ["", "c", "r"],
  leaseContainer: ["", "c", "w"],
  readAccess: ["", "", ""],
  list: ["l", "c", "l"],
  find: ["f", "c", "f"],
  read: ["r", "o", "r"],
  write: ["w", "o", "w"],
  create: ["cw", "o", "cw"],
  delete: ["d", "o", "d"],
  deleteVersion: ["x", "o", "x"],
  tags: ["t", "o", "t"],
  makeSas: ["", "", ""],
} as const;

export type Act = keyof typeof ACTS;

/** Return the right that is missing: "key", or letters of which one would do. Null: nothing is known to be. */
export function missingRight(credential: Credential, act: Act): string | null {
  if (act === "makeSas") return null; // its dialog says what it needs
  return lackedLetters(credential, ACTS[act]);
}

/** Whether a credential can be for the Blob service at all. */
export function isForBlobs(credential: Credential): boolean {
  if (credential.kind !== "sas") return true;
  const services = new URLSearchParams(credential.token).get("ss");
  return services === null ? credential.service === "blob" : services.includes("b");
}

/** Return the container, and the blob, that a SAS of one of them is for. */
export function reachOf({ path, token }: SasCredential): { readonly container: string; readonly blob: string } | null {
  if (new URLSearchParams(token).has("ss")) return null;
  const [container = "", ...names] = path.split("/").slice(1).map(decodeURIComponent);
  return container ? { container, blob: names.join("/") } : null;
}
