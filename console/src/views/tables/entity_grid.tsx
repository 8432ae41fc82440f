// The grid of a page of entities: typed cells, edited in place, each write under If-Match.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Grid, type GridColumn, type Place } from "../../components/grid";
import type { Entity, TypedValue } from "../../protocol/entities";
import type { TableAt } from "../../protocol/tables";
import { localTime, utcTime } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { lackingPlace } from "../places/rights";
import { CellEditor } from "./cell_editor";
import { isNumber, KEY_COLUMNS, keyText, keyWidth, lineOf, type PropertyColumn } from "./columns";
import { ConflictDialog } from "./conflict";
import type { Rows } from "./rows";
import { type Change, type Conflict, isConflict, save } from "./saving";

const ACTS_PX = 110;
const TIME_PX = 210;
const words = texts.tables;

export interface EntityGridProps {
  readonly at: TableAt;
  readonly rows: Rows;
  readonly columns: readonly PropertyColumn[];
  readonly onDelete: (entity: Entity) => void;
}

export function EntityGrid({ at, rows, columns, onDelete }: EntityGridProps): JSX.Element {
  // One after the other: a second edit may be refused while one chooses about the first.
  const conflicts = useSignal<readonly Conflict[]>([]);
  const editing = useSignal<Place | null>(null);
  const draft = useSignal<Change | null>(null);
  const entities = rows.entities.value;
  const acts = { canChange: !lackingPlace("changeEntity"), canDelete: !lackingPlace("deleteEntity") };
  const entityAt = (row: number): Entity => {
    const entity = entities[row];
    if (!entity) throw new RangeError(`no row ${row}`);
    return entity;
  };
  const propertyAt = (column: number): PropertyColumn | undefined => columns[column - KEY_COLUMNS.length];
  const commit = (entity: Entity, change: Change): void => {
    save(at, entity, change)
      .then((result) => {
        if (isConflict(result)) conflicts.value = [...conflicts.value, result];
        else {
          rows.put(entity, result);
          say(words.saved);
        }
      })
      .catch(complain);
  };
  const [conflict] = conflicts.value;
  const close = (next: readonly Conflict[] = []): void => { conflicts.value = [...next, ...conflicts.value.slice(1)]; };
  const editAgain = ({ seen, change }: Conflict): void => {
    const row = entities.findIndex((one) => one.partitionKey === seen.partitionKey && one.rowKey === seen.rowKey);
    const column = columns.findIndex((one) => one.name === change.name);
    close();
    if (row < 0 || column < 0) return;
    draft.value = change;
    editing.value = { row, column: KEY_COLUMNS.length + column };
  };
  const editor = (row: number, column: number, ended: () => void): JSX.Element => {
    const done = (): void => { draft.value = null; ended(); };
    const property = propertyAt(column);
    const entity = entityAt(row);
    const name = property?.name ?? "";
    return (
      <CellEditor
        name={name}
        value={entity.properties.get(name) ?? null}
        draft={draft.value?.value}
        usualType={property?.type ?? "String"}
        onCancel={done}
        onSave={(value) => { done(); commit(entity, { name, value }); }}
      />
    );
  };
  const cell = (row: number, column: number, tabIndex: number): JSX.Element | string => {
    const entity = entityAt(row);
    const key = KEY_COLUMNS[column];
    if (key === "Timestamp") return entity.timestamp ? localTime(entity.timestamp) : "";
    if (key) return keyText(entity, key);
    const property = propertyAt(column);
    if (!property) return <DeleteButton entity={entity} tabIndex={tabIndex} onDelete={onDelete} />;
    const value = entity.properties.get(property.name);
    return value ? <Value value={value} usual={property} /> : <span class="absent" aria-label={words.noValue}>{words.absent}</span>;
  };
  const title = (row: number, column: number): string | undefined => {
    const entity = entityAt(row);
    if (KEY_COLUMNS[column] === "Timestamp") return entity.timestamp ? utcTime(entity.timestamp) : undefined;
    const value = entity.properties.get(propertyAt(column)?.name ?? "");
    return value ? words.valueTitle(value.type, value.text) : undefined;
  };
  return (
    <>
      <Grid
        label={at.table}
        columns={gridColumns(entities, columns, acts)}
        count={entities.length}
        keyOf={(row) => JSON.stringify([entityAt(row).partitionKey, entityAt(row).rowKey])}
        cell={cell}
        cellTitle={title}
        editor={editor}
        editing={editing}
        {...(acts.canDelete ? { onDelete: (row: number) => { onDelete(entityAt(row)); } } : {})}
      />
      {acts.canChange && <p class="hint">{words.gridHint}</p>}
      {conflict && (
        <ConflictDialog
          key={JSON.stringify([conflict.seen.partitionKey, conflict.seen.rowKey, conflict.change.name])}
          at={at}
          conflict={conflict}
          onCancel={() => { editAgain(conflict); }}
          onAgain={(next) => { close([next]); }}
          onChosen={(entity) => { rows.put(conflict.seen, entity); close(); }}
        />
      )}
    </>
  );
}

interface Acts {
  readonly canChange: boolean;
  readonly canDelete: boolean;
}

function gridColumns(entities: readonly Entity[], columns: readonly PropertyColumn[], { canChange, canDelete }: Acts): GridColumn[] {
  return [
    ...KEY_COLUMNS.map((name) => ({
      key: name,
      header: name,
      widthPx: name === "Timestamp" ? TIME_PX : keyWidth(name, entities),
      isReadOnly: true,
      class: name === "Timestamp" ? "key time" : "key",
    })),
    ...columns.map((one) => ({
      key: `property ${one.name}`,
      header: <>{one.name} <span class="type">{one.type}</span></>,
      widthPx: one.widthPx,
      isReadOnly: !canChange,
      class: isNumber(one.type) ? "number" : "",
    })),
    ...(canDelete ? [{ key: "acts", header: texts.data.acts, widthPx: ACTS_PX, isReadOnly: true, hasButton: true }] : []),
  ];
}

function Value({ value, usual }: { readonly value: TypedValue; readonly usual: PropertyColumn }): JSX.Element {
  return (
    <>
      {value.text === "" ? <span class="absent">{words.emptyText}</span> : lineOf(value)}
      {value.type !== usual.type && <span class="type">{" "}{value.type}</span>}
    </>
  );
}

function DeleteButton({ entity, tabIndex, onDelete }: { readonly entity: Entity; readonly tabIndex: number; readonly onDelete: (entity: Entity) => void }): JSX.Element {
  return (
    <button type="button" class="button quiet" tabIndex={tabIndex} aria-label={words.deleteOf(entity.rowKey)} onClick={() => { onDelete(entity); }}>
      {words.delete}
    </button>
  );
}

