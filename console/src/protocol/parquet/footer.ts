// What the footer of a Parquet file says: schema, row groups, who wrote it. Here: the meaning of the
// fields. Not here: the encoding (thrift.ts), reading ranges. Source: parquet.thrift of
// apache/parquet-format.

import { type Fields, readStruct, ThriftError, TooManyError, type Value } from "./thrift";

/** At the end of a file: four bytes of length, four of magic. */
export const TAIL_BYTES = 8;
export const FOOTER_MAX_BYTES = 4 * 1024 * 1024;
const MAGIC = "PAR1";
const ENCRYPTED = "PARE";

/** Why a file is not shown. */
export type Unreadable = "no_parquet" | "encrypted" | "too_large" | "too_many" | "damaged";

export class ParquetError extends Error {
  constructor(readonly why: Unreadable) {
    super(why);
  }
}

export interface SchemaRow {
  readonly name: string;
  /** 0: a column of the table itself. */
  readonly depth: number;
  /** In the words of the format; "" of a group without a logical type. */
  readonly type: string;
  readonly repetition: string;
}

export interface RowGroup {
  readonly rows: number;
  readonly storedBytes: number;
  readonly rawBytes: number;
  readonly codecs: readonly string[];
}

export interface ParquetFooter {
  readonly version: number;
  readonly rows: number;
  readonly createdBy: string;
  readonly schema: readonly SchemaRow[];
  /** How many columns hold values; groups do not. */
  readonly columns: number;
  readonly rowGroups: readonly RowGroup[];
  readonly codecs: readonly string[];
  /** The names of what its writer noted. */
  readonly keys: readonly string[];
}

const PHYSICAL = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"];
const REPETITIONS = ["required", "optional", "repeated"];
const CODECS = ["UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"];
const CONVERTED = [
  ...["UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS", "TIMESTAMP_MILLIS"],
  ...["TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "INT_8", "INT_16", "INT_32", "INT_64", "JSON", "BSON", "INTERVAL"],
];
/** By the id in the union LogicalType. */
const LOGICAL: Readonly<Record<number, string>> = {
  1: "STRING", 2: "MAP", 3: "LIST", 4: "ENUM", 5: "DECIMAL", 6: "DATE", 7: "TIME", 8: "TIMESTAMP", 10: "INTEGER", 11: "UNKNOWN",
  12: "JSON", 13: "BSON", 14: "UUID", 15: "FLOAT16", 16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY",
};
const UNITS: Readonly<Record<number, string>> = { 1: "MILLIS", 2: "MICROS", 3: "NANOS" };

/** Whether some bytes begin as a Parquet file does. */
export function looksLikeParquet(start: Uint8Array): boolean {
  return latin1(start.subarray(0, 4)) === MAGIC;
}

/** Return the length of the footer, from the last bytes of a file. Raises: ParquetError. */
export function footerLength(tail: Uint8Array, sizeBytes: number): number {
  const magic = latin1(tail.subarray(4, TAIL_BYTES));
  if (magic === ENCRYPTED) throw new ParquetError("encrypted");
  if (magic !== MAGIC || tail.length !== TAIL_BYTES) throw new ParquetError("no_parquet");
  const length = new DataView(tail.buffer, tail.byteOffset).getUint32(0, true);
  if (length === 0 || length > sizeBytes - TAIL_BYTES - MAGIC.length) throw new ParquetError("damaged");
  if (length > FOOTER_MAX_BYTES) throw new ParquetError("too_large");
  return length;
}

/** Read a footer. Raises: ParquetError. */
export function readFooter(bytes: Uint8Array): ParquetFooter {
  let fields: Fields;
  try {
    fields = readStruct(bytes);
  } catch (error) {
    if (error instanceof TooManyError) throw new ParquetError("too_many");
    if (error instanceof ThriftError) throw new ParquetError("damaged");
    throw error;
  }
  const schema = listOf(fields, 2).filter(isStruct);
  const rowGroups = listOf(fields, 4).filter(isStruct).map(rowGroup);
  if (!schema.length || typeof fields.get(3) !== "number") throw new ParquetError("damaged");
  return {
    version: numberOf(fields, 1),
    rows: numberOf(fields, 3),
    createdBy: textOf(fields, 6),
    schema: schemaRows(schema),
    columns: schema.filter((one) => one.has(1)).length,
    rowGroups,
    codecs: unique(rowGroups.flatMap((one) => one.codecs)),
    keys: listOf(fields, 5).filter(isStruct).map((one) => textOf(one, 1)),
  };
}

/** The schema is a tree, written parents first; each says how many children follow. */
function schemaRows(schema: readonly Fields[]): SchemaRow[] {
  const left: number[] = [];
  return schema.slice(1).map((one) => {
    while (left.length && left.at(-1) === 0) left.pop();
    const depth = left.length;
    if (depth) left[depth - 1] = (left[depth - 1] ?? 1) - 1;
    const children = numberOf(one, 5);
    if (children > 0) left.push(children);
    return { name: textOf(one, 4), depth, type: typeOf(one), repetition: REPETITIONS[numberOf(one, 3)] ?? "" };
  });
}

function typeOf(element: Fields): string {
  const fixed = element.get(1) === 7 ? `[${numberOf(element, 2)}]` : "";
  const physical = element.has(1) ? `${PHYSICAL[numberOf(element, 1)] ?? "?"}${fixed}` : "";
  const logical = logicalOf(element) || convertedOf(element);
  return physical && logical ? `${physical} (${logical})` : physical || logical;
}

function logicalOf(element: Fields): string {
  const union = element.get(10);
  if (!isStruct(union)) return "";
  const [first] = union;
  if (!first) return "";
  const [id, value] = first;
  const name = LOGICAL[id] ?? "";
  const more = isStruct(value) ? logicalMore(id, value) : "";
  return more ? `${name} ${more}` : name;
}

function logicalMore(id: number, value: Fields): string {
  if (id === 5) return `${numberOf(value, 2)},${numberOf(value, 1)}`;
  if (id === 10) return `${numberOf(value, 1)}${value.get(2) === false ? " unsigned" : ""}`;
  if (id !== 7 && id !== 8) return "";
  const unit = value.get(2);
  const name = isStruct(unit) ? (UNITS[[...unit.keys()][0] ?? 0] ?? "") : "";
  return value.get(1) === true ? `${name} UTC` : name;
}

function convertedOf(element: Fields): string {
  return element.has(6) ? (CONVERTED[numberOf(element, 6)] ?? "") : "";
}

function rowGroup(group: Fields): RowGroup {
  const chunks = listOf(group, 1).filter(isStruct).map((chunk) => chunk.get(3)).filter(isStruct);
  const sum = (id: number): number => chunks.reduce((total, chunk) => total + numberOf(chunk, id), 0);
  return {
    rows: numberOf(group, 3),
    rawBytes: sum(6),
    storedBytes: sum(7),
    codecs: unique(chunks.map((chunk) => CODECS[numberOf(chunk, 4)] ?? "?")),
  };
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}

function isStruct(value: Value | undefined): value is Fields {
  return value instanceof Map;
}

function numberOf(fields: Fields, id: number): number {
  const value = fields.get(id);
  return typeof value === "number" ? value : 0;
}

function textOf(fields: Fields, id: number): string {
  const value = fields.get(id);
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : "";
}

function listOf(fields: Fields, id: number): readonly Value[] {
  const value = fields.get(id);
  return Array.isArray(value) ? (value as readonly Value[]) : [];
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
