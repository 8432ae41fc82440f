// The records of a place, kept current by long polls, and the acts on them.

import { type ReadonlySignal, signal } from "@preact/signals";

import type { BreakAct, GateAct } from "../../api/documents";
import { actApi, askApi, type Query } from "../../protocol/requests";
import { repeat } from "../../state/live";
import { accountQuery, currentSession } from "../../state/session";

const WAIT_S = 20;

export interface Watched<Document> {
  readonly document: ReadonlySignal<Document | null>;
  /** When the document came, by `performance.now()`: its times left count from then. */
  readonly receivedMs: ReadonlySignal<number>;
  readonly error: ReadonlySignal<unknown>;
  /** Ask again and again. Return what ends it. */
  readonly run: () => () => void;
}

/** Watch `coordination` with these parameters. */
export function watchedOf<Document extends { readonly change: string }>(query: Query): Watched<Document> {
  const document = signal<Document | null>(null);
  const receivedMs = signal(0);
  const error = signal<unknown>(null);
  const ask = async (end: AbortSignal): Promise<void> => {
    const known = error.value === null ? document.value : null;
    const asked = { ...query, ...accountQuery(), change: known?.change, wait_s: known ? WAIT_S : 0 };
    const answer = await askApi<Document>(currentSession().credential, "coordination", asked, end);
    receivedMs.value = performance.now();
    document.value = answer;
    error.value = null;
  };
  return { document, receivedMs, error, run: () => repeat(ask, 0, (problem) => { error.value = problem; }) };
}

/** Where a record is: a container of this server, or a further store. */
export type Place = { readonly container: string } | { readonly store: string };

export async function actOnGate(place: Place, name: string, act: "open" | "rearm", state: string): Promise<void> {
  await actApi<GateAct>(currentSession().credential, { ...named("gates", name, act, place), state });
}

export async function breakHold(place: Place, name: string, kind: string, state: string): Promise<readonly string[]> {
  const asked = named("locks", name, "break", place);
  const act = { ...asked, query: { ...asked.query, kind }, state };
  return (await actApi<BreakAct>(currentSession().credential, act)).broken;
}

function named(things: string, name: string, act: string, place: Place): { readonly path: string; readonly query: Query } {
  // A URL cannot have "." and ".." as segments, encoded or not.
  const isDots = name === "." || name === "..";
  const segment = isDots ? "-" : encodeURIComponent(name);
  return {
    path: `coordination/${things}/${segment}/${act}`,
    query: { ...place, ...accountQuery(), name: isDots ? name : undefined },
  };
}
