// Reads something once, and again when it is asked to. A read that is overtaken is aborted.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Loaded<Value> {
  /** The newest answer; it stays while the same thing is read again. */
  readonly value: Signal<Value | null>;
  readonly error: Signal<unknown>;
  readonly isBusy: Signal<boolean>;
  readonly reload: () => void;
}

/** Call `load` now, and when `key` changes. */
export function useLoaded<Value>(key: string, load: (signal: AbortSignal) => Promise<Value>): Loaded<Value> {
  const value = useSignal<Value | null>(null);
  const error = useSignal<unknown>(null);
  const isBusy = useSignal(true);
  const round = useSignal(0);
  const shownKey = useSignal(key);
  useEffect(() => {
    const end = new AbortController();
    if (shownKey.value !== key) {
      shownKey.value = key;
      value.value = null;
      error.value = null;
    }
    isBusy.value = true;
    load(end.signal)
      .then((found) => {
        if (end.signal.aborted) return;
        value.value = found;
        error.value = null;
        isBusy.value = false;
      })
      .catch((problem: unknown) => {
        if (end.signal.aborted) return;
        error.value = problem;
        isBusy.value = false;
      });
    return () => { end.abort(); };
  }, [key, round.value]);
  return { value, error, isBusy, reload: () => { round.value += 1; } };
}
