// How long a lease lasts. Of a lease of a blob or container that others hold, the read API tells it to whoever
// may read the blob; the public protocol does not.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { LeaseTime } from "../api/documents";
import type { BlobPlace, ContainerPlace } from "../protocol/blob/place";
import { askApi } from "../protocol/requests";
import { repeat } from "../state/live";
import { countText } from "../state/times";
import { texts } from "../texts";

const words = texts.blobs;
const EVERY_MS = 2000;

/** The time of a lease of others. A SAS is told that an account's key would show it. */
export function TimeOfOthers({ place }: { readonly place: ContainerPlace | BlobPlace }): JSX.Element | null {
  const endsMs = useSignal<number | null>(null);
  const isSas = place.credential.kind === "sas";
  useEffect(() => {
    if (isSas) return undefined;
    const query = { account: place.account, container: place.container, ...("blob" in place ? { blob: place.blob } : {}) };
    const ask = async (signal: AbortSignal): Promise<void> => {
      const { left_s } = await askApi<LeaseTime>(place.credential, "leases", query, signal);
      endsMs.value = left_s === null ? null : Date.now() + left_s * 1000;
    };
    return repeat(ask, EVERY_MS, () => { endsMs.value = null; });
  }, []);
  if (isSas) return <span class="muted">{words.leaseTimeNeedsKey}</span>;
  return endsMs.value === null ? null : <Countdown endsMs={endsMs.value} />;
}

/** `endsMs`: in milliseconds since 1970 by this computer; null: never. */
export function Countdown({ endsMs }: { readonly endsMs: number | null }): JSX.Element {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => { now.value = Date.now(); }, 250);
    return () => { clearInterval(timer); };
  }, []);
  if (endsMs === null) return <span>{words.leaseInfinite}</span>;
  const left = Math.max(0, Math.ceil((endsMs - now.value) / 1000));
  return <span class="countdown" role="timer">{words.leaseLeft(words.seconds(countText(left)))}</span>;
}
