// The live tail: long polls, newest number by newest number. Rows are kept oldest first.

import { type ReadonlySignal, signal } from "@preact/signals";

import type { RequestRow, RequestsPage } from "../../api/documents";
import { askApi } from "../../protocol/requests";
import { repeat } from "../../state/live";
import { accountQuery, currentSession } from "../../state/session";

export interface Tail {
  readonly rows: ReadonlySignal<readonly RequestRow[]>;
  /** How many rows came since the start; unlike the rows' count it never falls. */
  readonly added: ReadonlySignal<number>;
  readonly newest: ReadonlySignal<number>;
  /** Requests that passed between two answers and are no longer kept. */
  readonly lost: ReadonlySignal<number>;
  readonly error: ReadonlySignal<unknown>;
  /** Whether an answer has come. */
  readonly isRead: ReadonlySignal<boolean>;
  /** Go on where it stopped. Return what stops it. */
  readonly run: () => () => void;
}

const KEPT_ROWS = 10_000;
const WAIT_S = 20;
const LIMIT = 500;

export function tailOf(filter: string): Tail {
  const rows = signal<readonly RequestRow[]>([]);
  const added = signal(0);
  const newest = signal(0);
  const lost = signal(0);
  const error = signal<unknown>(null);
  const isRead = signal(false);
  const ask = async (end: AbortSignal): Promise<void> => {
    const query = { after: newest.value, wait_s: isRead.value ? WAIT_S : 0, limit: LIMIT, filter: filter || undefined, ...accountQuery() };
    const answer = await askApi<RequestsPage>(currentSession().credential, "requests", query, end);
    if (isRead.value) lost.value += Math.max(0, answer.oldest_kept - newest.value - 1);
    if (answer.requests.length) {
      rows.value = [...rows.value, ...answer.requests].slice(-KEPT_ROWS);
      added.value += answer.requests.length;
    }
    newest.value = answer.newest;
    error.value = null;
    isRead.value = true;
  };
  return { rows, added, newest, lost, error, isRead, run: () => repeat(ask, 0, (problem) => { error.value = problem; }) };
}
