// What a shared access signature permits in the File service, as far as its own text says. Source:
// docs/operations/file.md, columns `sas` and `account sas`.

import type { Credential, SasCredential } from "../credentials";
import { isAccountSas, lackedLetters, type Needed } from "../rights";

/** Letters of a service SAS of which one is enough ("": never by one), and those of an account SAS. */
const ACTS = {
  listShares: ["", "s", "l"],
  createShare: ["", "c", "cw"],
  deleteShare: ["", "c", "d"],
  restoreShare: ["", "c", "w"],
  readShare: ["", "c", "r"],
  writeShare: ["", "c", "w"],
  snapshotShare: ["", "c", "cw"],
  leaseShare: ["", "c", "w"],
  list: ["l", "c", "l"],
  read: ["r", "o", "r"],
  readPermission: ["r", "c", "r"],
  write: ["w", "o", "w"],
  create: ["cw", "o", "cw"],
  delete: ["d", "o", "d"],
} as const satisfies Readonly<Record<string, Needed>>;

export type FileAct = keyof typeof ACTS;

/** Return the right that is missing: "key", or letters of which one would do. Null: nothing is known to be. */
export function missingFileRight(credential: Credential, act: FileAct): string | null {
  return lackedLetters(credential, ACTS[act]);
}

/** Return the share, and the path in it, that a SAS of one of them is for; null: it is for all shares. */
export function shareReach(credential: SasCredential): { readonly share: string; readonly path: readonly string[] } | null {
  if (isAccountSas(credential)) return null;
  const [share = "", ...path] = credential.path.split("/").slice(1).filter(Boolean).map(decodeURIComponent);
  return share ? { share, path } : null;
}
