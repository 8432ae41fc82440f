// Which columns the grid has, and how wide they are. Pure.

import type { EdmType, Entity, TypedValue } from "../../protocol/entities";

export const KEY_COLUMNS = ["PartitionKey", "RowKey", "Timestamp"] as const;

export interface PropertyColumn {
  readonly name: string;
  /** The type that most values have. */
  readonly type: EdmType;
  readonly widthPx: number;
}

const CHAR_PX = 8.8;
const PADDING_PX = 26;
const NARROWEST_PX = 96;
const WIDEST_PX = 300;
const SAMPLE_ROWS = 60;

/** Return a column for each property that an entity has, in the order in which they come. */
export function propertyColumns(entities: readonly Entity[]): PropertyColumn[] {
  const counts = new Map<string, Map<EdmType, number>>();
  for (const { properties } of entities) {
    for (const [name, { type }] of properties) {
      const types = counts.get(name) ?? new Map<EdmType, number>();
      counts.set(name, types.set(type, (types.get(type) ?? 0) + 1));
    }
  }
  return [...counts].map(([name, types]) => {
    const type = [...types].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
    const lengths = entities.slice(0, SAMPLE_ROWS).map((one) => one.properties.get(name)?.text.length ?? 0);
    return { name, type, widthPx: widthOf(Math.max(name.length + type.length + 2, ...lengths)) };
  });
}

export function keyWidth(name: (typeof KEY_COLUMNS)[number], entities: readonly Entity[]): number {
  const lengths = entities.slice(0, SAMPLE_ROWS).map((one) => keyText(one, name).length);
  return widthOf(Math.max(name.length + 1, ...lengths));
}

/** Return what stands in one of the first columns. */
export function keyText(entity: Entity, name: string): string {
  if (name === "PartitionKey") return entity.partitionKey;
  return name === "RowKey" ? entity.rowKey : entity.timestamp;
}

/** Return a value as one line. */
export function lineOf(value: TypedValue): string {
  return value.text.replace(/[\r\n\t]+/g, " ");
}

export function isNumber(type: EdmType): boolean {
  return type === "Int32" || type === "Int64" || type === "Double";
}

function widthOf(chars: number): number {
  return Math.round(Math.min(WIDEST_PX, Math.max(NARROWEST_PX, chars * CHAR_PX + PADDING_PX)));
}
