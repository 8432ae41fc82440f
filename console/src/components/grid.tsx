// A grid of cells: one stop of the Tab key, arrows inside, Enter edits. Only rows in sight are in the
// document, and the row with the focus. Source: the ARIA Authoring Practices, "Grid".

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface GridColumn {
  readonly key: string;
  readonly header: ComponentChildren;
  readonly widthPx: number;
  readonly isReadOnly: boolean;
  /** Its cells hold one button each, which has the focus in place of the cell. */
  readonly hasButton?: boolean;
  readonly class?: string;
}

export interface GridProps {
  readonly label: string;
  readonly columns: readonly GridColumn[];
  readonly count: number;
  readonly keyOf: (row: number) => string;
  /** `tabIndex`: for the button of a cell that holds one. */
  readonly cell: (row: number, column: number, tabIndex: number) => ComponentChildren;
  readonly cellTitle?: (row: number, column: number) => string | undefined;
  /** What is shown in a cell while it is edited. It calls `done` when the cell is to be shown again. */
  readonly editor: (row: number, column: number, done: () => void) => JSX.Element;
  /** The cell that is edited: set it to begin an edit from outside. */
  readonly editing: Signal<Place | null>;
  /** The key Delete on a row. */
  readonly onDelete?: (row: number) => void;
}

export interface Place {
  readonly row: number;
  readonly column: number;
}

export const GRID_ROW_PX = 36;
const BEYOND_ROWS = 8;

export function Grid(props: GridProps): JSX.Element {
  const { label, columns, count, editing } = props;
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useHeight(box);
  const active = useSignal<Place>({ row: 0, column: 0 });
  const at = inside(active.value, count, columns.length);
  const template = columns.map((one) => `${one.widthPx}px`).join(" ");
  const focusCell = useCellFocus(box, active);
  useLayoutEffect(() => { if (editing.value) active.value = editing.value; }, [editing.value]);
  const begin = (place: Place): void => {
    active.value = place;
    if (!columns[place.column]?.isReadOnly) editing.value = place;
  };
  const done = (): void => {
    const hadFocus = box.current?.contains(document.activeElement) ?? false;
    editing.value = null;
    if (hadFocus || document.activeElement === document.body) focusCell();
  };
  const keys = (event: KeyboardEvent): void => {
    if (editing.value || !isCell(event.target)) return;
    if (event.key === "Delete" && props.onDelete) return props.onDelete(at.row);
    if (event.key === "F2" || (event.key === "Enter" && !columns[at.column]?.isReadOnly)) {
      event.preventDefault();
      return begin(at);
    }
    const next = moved(event, at, count, columns.length, Math.max(1, Math.floor(height.value / GRID_ROW_PX) - 2));
    if (!next) return;
    event.preventDefault();
    active.value = next;
    focusCell();
  };
  return (
    <div
      ref={box}
      class="grid-box"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length}
      onKeyDown={keys}
      onScroll={(event) => { top.value = event.currentTarget.scrollTop; }}
    >
      <div role="rowgroup" class="grid-head">
        <div role="row" aria-rowindex={1} class="grid-row" style={{ gridTemplateColumns: template }}>
          {columns.map((one, column) => (
            <div key={one.key} role="columnheader" aria-colindex={column + 1} class={`grid-cell ${one.class ?? ""}`}>{one.header}</div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${count * GRID_ROW_PX}px`, width: `${columns.reduce((sum, one) => sum + one.widthPx, 0)}px` }}>
        {rowsInSight(top.value, height.value, count, at.row).map((row) => (
          <Line
            key={props.keyOf(row)}
            grid={props}
            row={row}
            template={template}
            active={at.row === row ? at.column : null}
            editing={editing.value?.row === row ? editing.value.column : null}
            onActive={(column) => { active.value = { row, column }; }}
            onBegin={(column) => { begin({ row, column }); }}
            onDone={done}
          />
        ))}
      </div>
    </div>
  );
}

interface LineProps {
  readonly grid: GridProps;
  readonly row: number;
  readonly template: string;
  readonly active: number | null;
  readonly editing: number | null;
  readonly onActive: (column: number) => void;
  readonly onBegin: (column: number) => void;
  readonly onDone: () => void;
}

function Line({ grid, row, template, active, editing, onActive, onBegin, onDone }: LineProps): JSX.Element {
  return (
    <div role="row" aria-rowindex={row + 2} class="grid-row" style={{ gridTemplateColumns: template, top: `${row * GRID_ROW_PX}px` }}>
      {grid.columns.map((one, column) => {
        const isEdited = editing === column;
        const tabIndex = active === column ? 0 : -1;
        return (
          <div
            key={one.key}
            role="gridcell"
            data-cell={`${row}:${column}`}
            aria-colindex={column + 1}
            aria-readonly={one.isReadOnly}
            tabIndex={isEdited || one.hasButton ? undefined : tabIndex}
            title={isEdited ? undefined : grid.cellTitle?.(row, column)}
            class={`grid-cell ${one.class ?? ""}${isEdited ? " edited" : ""}`}
            onFocusIn={() => { if (active !== column) onActive(column); }}
            onDblClick={() => { if (!isEdited) onBegin(column); }}
          >
            {isEdited ? grid.editor(row, column, onDone) : grid.cell(row, column, tabIndex)}
          </div>
        );
      })}
    </div>
  );
}

/** Return a function that gives the focus to the active cell once it is drawn. */
function useCellFocus(box: { readonly current: HTMLDivElement | null }, active: Signal<Place>): () => void {
  const asked = useSignal(0);
  useLayoutEffect(() => {
    if (asked.value === 0) return;
    const { row, column } = active.value;
    const cell = box.current?.querySelector<HTMLElement>(`[data-cell="${row}:${column}"]`);
    (cell?.querySelector<HTMLElement>("button") ?? cell)?.focus();
  }, [asked.value]);
  return () => { asked.value += 1; };
}

function useHeight(box: { readonly current: HTMLDivElement | null }): Signal<number> {
  const height = useSignal(600);
  useEffect(() => {
    if (!box.current) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) height.value = entry.contentRect.height;
    });
    observer.observe(box.current);
    return () => { observer.disconnect(); };
  }, []);
  return height;
}

/** Return the rows to draw, in order: those near the window, and the one with the focus. */
export function rowsInSight(topPx: number, heightPx: number, count: number, active: number): number[] {
  const first = Math.max(0, Math.floor(topPx / GRID_ROW_PX) - BEYOND_ROWS);
  const last = Math.min(count, Math.ceil((topPx + heightPx) / GRID_ROW_PX) + BEYOND_ROWS);
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
  if (active < first && active < count) rows.unshift(active);
  else if (active >= last && active < count) rows.push(active);
  return rows;
}

/** Return where a key leads; null: it leads nowhere. */
export function moved(
  event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey">,
  { row, column }: Place,
  rows: number,
  columns: number,
  page: number,
): Place | null {
  const isFar = event.ctrlKey || event.metaKey;
  const to: Readonly<Record<string, Place>> = {
    ArrowDown: { row: isFar ? rows - 1 : row + 1, column },
    ArrowUp: { row: isFar ? 0 : row - 1, column },
    ArrowRight: { row, column: isFar ? columns - 1 : column + 1 },
    ArrowLeft: { row, column: isFar ? 0 : column - 1 },
    PageDown: { row: row + page, column },
    PageUp: { row: row - page, column },
    Home: { row: isFar ? 0 : row, column: 0 },
    End: { row: isFar ? rows - 1 : row, column: columns - 1 },
  };
  const next = to[event.key];
  return next ? inside(next, rows, columns) : null;
}

function inside({ row, column }: Place, rows: number, columns: number): Place {
  return { row: Math.max(0, Math.min(row, rows - 1)), column: Math.max(0, Math.min(column, columns - 1)) };
}

// Keys in a cell's editor are the editor's own. A button in a cell is a cell's.
function isCell(target: EventTarget | null): boolean {
  return target instanceof Element && !target.closest("input, textarea, select") && target.closest('[role="gridcell"]') !== null;
}
