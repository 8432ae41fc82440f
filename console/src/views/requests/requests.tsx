// Requests: the live tail, its filter, and one request in full beside it.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import type { RequestRow } from "../../api/documents";
import { Button, Field } from "../../components/controls";
import { Empty, Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { type Column, Table } from "../../components/table";
import { address, addressOf, navigate } from "../../state/router";
import { account } from "../../state/session";
import { clockTime, countText, utcTime } from "../../state/times";
import { texts } from "../../texts";
import { OneRequest } from "./one_request";
import { tailOf } from "./tail";

const FILTER_PAUSE_MS = 250;
const SECRET = /(s|%73|%53)(i|%69|%49)(g|%67|%47)|eyJ/i;
const words = texts.requests;

export function Requests(): JSX.Element {
  const secret = useSignal<string | null>(null);
  const filter = secret.value ?? address.value.query["filter"] ?? "";
  const typed = useSignal(filter);
  const isPaused = useSignal(false);
  const tail = useMemo(() => tailOf(filter), [filter]);
  const number = address.value.names[0];
  useEffect(() => (isPaused.value ? undefined : tail.run()), [tail, isPaused.value]);
  useEffect(() => {
    if (typed.value === filter) return undefined;
    const timer = setTimeout(() => {
      secret.value = SECRET.test(typed.value) ? typed.value : null;
      // What was opened while one typed stays open.
      navigate(addressWith(typed.value, address.value.names[0]), true);
    }, FILTER_PAUSE_MS);
    return () => { clearTimeout(timer); };
  }, [typed.value]);
  const rows = tail.rows.value;
  const isReading = !tail.isRead.value && !isPaused.value;
  return (
    <div class="requests">
      <ViewHead title={words.title} lead={words.lead} />
      <div class="toolbar">
        <Field label={words.filter} type="search" value={typed.value} hint={words.filterHint} onInput={(value) => { typed.value = value; }} code />
        <Button onClick={() => { isPaused.value = !isPaused.value; }}>{isPaused.value ? words.resume : words.pause}</Button>
        <State isPaused={isPaused.value} shown={rows.length} newest={tail.newest.value} hasLost={tail.hasLost.value} />
      </div>
      <Problem error={tail.error.value} />
      <div class={number ? "beside" : "beside closed"}>
        {rows.length > 0 || isReading ? (
          <Table
            label={words.table}
            columns={COLUMNS}
            count={rows.length}
            rowAt={(index) => newestFirst(rows, index)}
            keyOf={(row) => row.number}
            hrefOf={(row) => addressWith(filter, String(row.number))}
            isOpen={(row) => String(row.number) === number}
            rowClass={(row) => (row.status >= 500 ? "failed" : row.status >= 400 ? "refused" : "")}
            added={tail.added.value}
          />
        ) : (
          <Nothing isUnread={!tail.isRead.value} hasFilter={filter !== ""} />
        )}
        {number && <OneRequest key={number} number={number} closed={addressWith(filter)} />}
      </div>
    </div>
  );
}

const COLUMNS: readonly Column<RequestRow>[] = [
  { key: "time", header: words.columns.time, class: "time", cell: (row) => <time dateTime={row.time} title={utcTime(row.time)}>{clockTime(row.time)}</time> },
  { key: "status", header: words.columns.status, class: "number status", cell: (row) => row.status },
  { key: "code", header: words.columns.code, class: "code-cell", cell: (row) => row.code },
  { key: "operation", header: words.columns.operation, opens: true, cell: (row) => row.operation || row.method },
  {
    key: "path",
    header: words.columns.path,
    class: "path",
    cell: (row) => (
      <span class="path-text" title={row.path}>
        {shortPath(row)}
        {row.through_console && <span class="tag" title={words.throughConsoleTitle}>{words.throughConsole}</span>}
      </span>
    ),
  },
  { key: "who", header: words.columns.who, class: "minor who-cell", cell: (row) => row.who },
  { key: "duration", header: words.columns.duration, class: "number minor", cell: (row) => row.duration_ms.toFixed(1) },
];

/** Why there are no rows, and what to do. `isUnread`: it was paused before the server answered. */
function Nothing({ isUnread, hasFilter }: { readonly isUnread: boolean; readonly hasFilter: boolean }): JSX.Element {
  if (isUnread) return <Empty title={words.emptyPausedTitle}>{words.emptyPaused}</Empty>;
  if (hasFilter) return <Empty title={words.emptyFilterTitle}>{words.emptyFilter}</Empty>;
  return <Empty title={words.emptyTitle}>{words.empty}</Empty>;
}

function State({ isPaused, shown, newest, hasLost }: { readonly isPaused: boolean; readonly shown: number; readonly newest: number; readonly hasLost: boolean }): JSX.Element {
  return (
    <p class="muted state">
      <span class={isPaused ? "dot" : "dot live"} />
      <span role="status">{isPaused ? words.paused : words.live}</span>
      <span>{words.count(countText(shown), countText(newest))}</span>
      {hasLost && <span>{words.lost}</span>}
    </p>
  );
}

/** Return the path after the account, where that is the one that is signed in: all of its paths begin so. */
function shortPath({ path, account: of }: RequestRow): string {
  const start = `/${account.value}/`;
  return of === account.value && path.startsWith(start) ? path.slice(start.length - 1) : path;
}

function newestFirst(rows: readonly RequestRow[], index: number): RequestRow {
  const row = rows[rows.length - 1 - index];
  if (!row) throw new RangeError(`no row ${index}`);
  return row;
}

// A text with a signature in it is a filter of this page only, and stays out of its address.
function addressWith(filter: string, number?: string): string {
  return addressOf("requests", number ? [number] : [], { filter: SECRET.test(filter) ? "" : filter });
}
