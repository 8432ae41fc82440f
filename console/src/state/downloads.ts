// The downloads that are under way: they end at sign-out, and the page does not sign out by itself meanwhile.

import { atSignOut } from "./session";

const underWay = new Set<AbortController>();

atSignOut(() => {
  for (const one of underWay) one.abort();
});

/** Note a download. Return what ends it, and what is to be called when it is over. */
export function beginDownload(): { readonly abort: AbortController; readonly finished: () => void } {
  const abort = new AbortController();
  underWay.add(abort);
  return { abort, finished: () => { underWay.delete(abort); } };
}

export function isDownloading(): boolean {
  return underWay.size > 0;
}
