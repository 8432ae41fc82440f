// A quota as people write it.

import { texts } from "../../texts";

const LARGEST_GIB = 102_400;

/** Return GiB. Raises: Error if the text is no quota. */
export function readQuota(text: string): number {
  const gib = Number(text.trim());
  if (!Number.isInteger(gib) || gib < 1 || gib > LARGEST_GIB) throw new Error(texts.files.notAQuota);
  return gib;
}
