// One file, kept current while it is shown. An account's key reads the opens, locks and the lease from
// the read API, and the properties only when they have changed: Get File Properties makes SMB clients
// write back what they cache, and so would change what is looked at. Others have the public protocol
// alone.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { ShownFileOpens } from "../../api/documents";
import { ServiceError } from "../../protocol/errors";
import { type HandleList, listHandles } from "../../protocol/files/handles";
import { fileProperties, type NodeProperties } from "../../protocol/files/nodes";
import { type PathPlace, pathText } from "../../protocol/files/place";
import { askApi } from "../../protocol/requests";
import { repeat } from "../../state/live";
import { currentSession } from "../../state/session";

const LIVE_MS = 1500;

export interface WatchedFile {
  readonly properties: Signal<NodeProperties | null>;
  /** What the read API tells; null for who may not ask it. */
  readonly opens: Signal<ShownFileOpens | null>;
  /** What REST tells of handles, where the read API is not asked. */
  readonly handles: Signal<HandleList | null>;
  readonly error: Signal<unknown>;
  /** Read all of it again. */
  readonly read: () => Promise<void>;
}

/** Whether this sign-in may ask the read API for opens: an account's key, or an operator. */
export function mayAskOpens(): boolean {
  return currentSession().who?.may_see.includes("overview") ?? false;
}

export function useWatchedFile(place: PathPlace): WatchedFile {
  const properties = useSignal<NodeProperties | null>(null);
  const opens = useSignal<ShownFileOpens | null>(null);
  const handles = useSignal<HandleList | null>(null);
  const error = useSignal<unknown>(null);
  const asksApi = mayAskOpens() && place.snapshot === undefined;
  const look = async (signal?: AbortSignal): Promise<void> => {
    try {
      if (asksApi) {
        opens.value = await askOpens(place, signal);
        if (opens.value.etag !== properties.value?.etag) properties.value = await fileProperties(place, signal);
      } else {
        properties.value = await fileProperties(place, signal);
        handles.value = await listHandles(place, false, signal);
      }
      error.value = null;
    } catch (problem) {
      if (problem instanceof ServiceError && problem.status === 404) properties.value = null;
      throw problem;
    }
  };
  useEffect(() => repeat(look, LIVE_MS, (problem) => { error.value = problem; }), []);
  const read = async (): Promise<void> => {
    try {
      properties.value = await fileProperties(place);
      await look();
    } catch (problem) {
      error.value = problem;
    }
  };
  return { properties, opens, handles, error, read };
}

/** Ask for the opens of a file of its own account, which need not be the sign-in's. */
export function askOpens(place: PathPlace, signal?: AbortSignal): Promise<ShownFileOpens> {
  const query = { account: place.account, share: place.share, path: pathText(place.path) };
  return askApi<ShownFileOpens>(place.credential, "files/opens", query, signal);
}
