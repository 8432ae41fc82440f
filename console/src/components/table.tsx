// A table of any length: only the rows in sight are in the document. All rows have one height.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { navigate } from "../state/router";

export interface Column<Row> {
  readonly key: string;
  readonly header: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** "number": to the right, in figures of one width. "minor": left out on narrow screens. */
  readonly class?: string;
  /** The cell that holds the link of the row. */
  readonly opens?: boolean;
}

export interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly count: number;
  readonly rowAt: (index: number) => Row;
  readonly keyOf: (row: Row) => string | number;
  /** The address that a row opens: by a click anywhere, or by the link in its cell that `opens`. */
  readonly hrefOf?: (row: Row) => string;
  readonly isOpen?: (row: Row) => boolean;
  readonly rowClass?: (row: Row) => string;
  /** How many rows were ever added on top: while one reads further down, these do not move the rows. */
  readonly added?: number;
}

export const ROW_HEIGHT_PX = 36;
const BEYOND_ROWS = 8;

export function Table<Row>(props: TableProps<Row>): JSX.Element {
  const { label, columns, count } = props;
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(600);
  useSize(box, height);
  useStill(box, props.added ?? 0);
  const first = Math.max(0, Math.min(count, Math.floor(top.value / ROW_HEIGHT_PX) - BEYOND_ROWS));
  const last = Math.min(count, Math.ceil((top.value + height.value) / ROW_HEIGHT_PX) + BEYOND_ROWS);
  const shown = Array.from({ length: last - first }, (_, at) => first + at);
  return (
    <div ref={box} class="table-box" onScroll={(event) => { top.value = event.currentTarget.scrollTop; }}>
      <table aria-label={label} aria-rowcount={count + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((one) => <th key={one.key} scope="col" class={one.class}>{one.header}</th>)}
          </tr>
        </thead>
        <tbody onKeyDown={(event) => { moveByKey(event, box.current, count); }}>
          <Spacer rows={first} columns={columns.length} />
          {shown.map((index) => {
            const row = props.rowAt(index);
            return <Line key={props.keyOf(row)} row={row} index={index} table={props} />;
          })}
          <Spacer rows={count - last} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

function Line<Row>({ row, index, table }: { readonly row: Row; readonly index: number; readonly table: TableProps<Row> }): JSX.Element {
  const href = table.hrefOf?.(row);
  const isOpen = table.isOpen?.(row) ?? false;
  const open = (event: MouseEvent): void => {
    const isControl = event.target instanceof Element && event.target.closest("a, button, input, select");
    if (href && !isControl && !getSelection()?.toString()) navigate(href);
  };
  return (
    <tr
      data-index={index}
      aria-rowindex={index + 2}
      class={`${href ? "opens " : ""}${isOpen ? "open " : ""}${table.rowClass?.(row) ?? ""}`}
      onClick={open}
    >
      {table.columns.map((one) => (
        <td key={one.key} class={one.class}>
          {one.opens && href ? <a href={href} aria-current={isOpen ? "true" : undefined}>{one.cell(row)}</a> : one.cell(row)}
        </td>
      ))}
    </tr>
  );
}

function Spacer({ rows, columns }: { readonly rows: number; readonly columns: number }): JSX.Element | null {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={columns} style={{ height: `${rows * ROW_HEIGHT_PX}px` }} />
    </tr>
  );
}

function useSize(box: { readonly current: HTMLDivElement | null }, height: { value: number }): void {
  useEffect(() => {
    if (!box.current) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) height.value = entry.contentRect.height;
    });
    observer.observe(box.current);
    return () => { observer.disconnect(); };
  }, []);
}

function useStill(box: { readonly current: HTMLDivElement | null }, added: number): void {
  const before = useRef(added);
  useLayoutEffect(() => {
    const more = added - before.current;
    before.current = added;
    if (box.current && more > 0 && box.current.scrollTop > ROW_HEIGHT_PX) box.current.scrollTop += more * ROW_HEIGHT_PX;
  }, [added]);
}

/** Arrows, Home and End move among the links of rows. */
function moveByKey(event: KeyboardEvent, box: HTMLDivElement | null, count: number): void {
  const line = event.target instanceof HTMLAnchorElement ? event.target.closest("tr") : null;
  if (!line || !box) return;
  const index = Number(line.dataset["index"]);
  const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: count - 1 }[event.key];
  if (to === undefined || to < 0 || to >= count) return;
  event.preventDefault();
  const head = box.querySelector("thead")?.clientHeight ?? 0;
  const at = to * ROW_HEIGHT_PX;
  if (at < box.scrollTop) box.scrollTop = at;
  else if (at + ROW_HEIGHT_PX + head > box.scrollTop + box.clientHeight) box.scrollTop = at + ROW_HEIGHT_PX + head - box.clientHeight;
  requestAnimationFrame(() => box.querySelector<HTMLElement>(`tr[data-index="${to}"] a`)?.focus({ preventScroll: true }));
}
