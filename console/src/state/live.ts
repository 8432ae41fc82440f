// Asks the read API again and again while a view is shown. A hidden page asks nothing.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { askApi, type Query } from "../protocol/requests";
import { session } from "./session";

export interface Live<Document> {
  /** The newest answer; it stays while later ones fail. */
  readonly document: Signal<Document | null>;
  readonly error: Signal<unknown>;
}

const SLOWEST_MS = 10_000;

/**
 * Ask `path` of the read API now and every `everyMs`, as who is signed in. A failure doubles the
 * pause, up to 10 seconds.
 */
export function useLive<Document>(path: string, everyMs: number, query: Query = {}): Live<Document> {
  const document_ = useSignal<Document | null>(null);
  const error = useSignal<unknown>(null);
  const asked = JSON.stringify(query);
  useEffect(() => {
    const ask = async (signal: AbortSignal): Promise<void> => {
      const credential = session.value?.credential ?? null;
      document_.value = await askApi<Document>(credential, path, JSON.parse(asked) as Query, signal);
      error.value = null;
    };
    return repeat(ask, everyMs, (problem) => {
      error.value = problem;
    });
  }, [path, asked, everyMs]);
  return { document: document_, error };
}

/** Call `act` now and `everyMs` after each end, while the page is visible. Return what ends it. */
export function repeat(
  act: (signal: AbortSignal) => Promise<void>,
  everyMs: number,
  failed: (error: unknown) => void,
): () => void {
  const end = new AbortController();
  const run = async (): Promise<void> => {
    let pauseMs = everyMs;
    while (!end.signal.aborted) {
      try {
        await act(end.signal);
        pauseMs = everyMs;
      } catch (error) {
        if (end.signal.aborted) return;
        failed(error);
        pauseMs = Math.min(Math.max(pauseMs, 500) * 2, SLOWEST_MS);
      }
      await pause(pauseMs, end.signal);
      await visible(end.signal);
    }
  };
  void run();
  return () => { end.abort(); };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const seen = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", seen);
      signal.removeEventListener("abort", seen);
      resolve();
    };
    document.addEventListener("visibilitychange", seen);
    signal.addEventListener("abort", seen);
  });
}
