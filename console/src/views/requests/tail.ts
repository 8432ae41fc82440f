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
  /** Whether requests passed between two answers that were not read. How many of them matched is not known. */
  readonly hasLost: ReadonlySignal<boolean>;
  readonly error: ReadonlySignal<unknown>;
  /** Whether an answer has come. */
  readonly isRead: ReadonlySignal<boolean>;
  /** Go on where it stopped. Return what stops it. */
  readonly run: () => () => void;
}

const KEPT_ROWS = 10_000;
const WAIT_S = 20;
const LIMIT = 500;
/** Where much is asked of the server, nobody reads faster, and each look costs it something. */
const PAUSE_MS = 500;

export function tailOf(filter: string): Tail {
  const rows = signal<readonly RequestRow[]>([]);
  const added = signal(0);
  const newest = signal(0);
  const hasLost = signal(false);
  const error = signal<unknown>(null);
  const isRead = signal(false);
  // After a full answer there may be much more: the next one begins with the newest.
  let isBehind = false;
  const ask = async (end: AbortSignal): Promise<void> => {
    const seen = newest.value;
    const isWaiting = isRead.value && !isBehind;
    const query = { after: isBehind ? 0 : seen, wait_s: isWaiting ? WAIT_S : 0, limit: LIMIT, filter: filter || undefined, ...accountQuery() };
    const answer = await askApi<RequestsPage>(currentSession().credential, "requests", query, end);
    const fresh = answer.requests.filter((one) => one.number > seen || answer.newest < seen);
    // The newest ones, and fewer than were asked for or some that were seen: there are no others.
    const first = isBehind && fresh.length === LIMIT ? (fresh[0]?.number ?? 0) : answer.oldest_kept;
    if (isRead.value && first > seen + 1) hasLost.value = true;
    if (fresh.length) {
      rows.value = [...rows.value, ...fresh].slice(-KEPT_ROWS);
      added.value += fresh.length;
    }
    isBehind = isRead.value && answer.requests.length === LIMIT && fresh.length === LIMIT;
    newest.value = answer.newest;
    error.value = null;
    isRead.value = true;
  };
  return { rows, added, newest, hasLost, error, isRead, run: () => repeat(ask, PAUSE_MS, (problem) => { error.value = problem; }) };
}
