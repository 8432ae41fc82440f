// Entities as the page keeps them: each value is its type and its text. Here: reading and writing
// their JSON without the loss of a digit. Source: "Payload format for Table service operations".
//
// Numbers are never made JavaScript's: an Int64 has more digits than those hold, and 1.0, which is a
// Double, would become 1, which is an Int32.

export const EDM_TYPES = ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"] as const;
export type EdmType = (typeof EDM_TYPES)[number];

export interface TypedValue {
  readonly type: EdmType;
  /** As its JSON shows it: digits, "true", ISO 8601, base64. */
  readonly text: string;
}

export type Properties = ReadonlyMap<string, TypedValue>;

export interface EntityKey {
  readonly partitionKey: string;
  readonly rowKey: string;
}

export interface NewEntity extends EntityKey {
  /** Without the keys and Timestamp. */
  readonly properties: Properties;
}

export interface Entity extends NewEntity {
  readonly timestamp: string;
  readonly etag: string;
}

const ANNOTATION = "@odata.type";
const OWN = /^odata\.|@odata\./;
const KEYS = ["PartitionKey", "RowKey", "Timestamp"];
const STRINGS_AND_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const INT32_MAX = 2n ** 31n;

/** A number of a JSON document, with the digits that it was written with. */
class NumberText {
  constructor(readonly text: string) {}
}

/** Parse JSON whose numbers keep their digits. Raises: SyntaxError. */
export function parseExactly(json: string): unknown {
  JSON.parse(json); // what is no JSON is refused before its numbers are marked
  const marked = json.replace(STRINGS_AND_NUMBERS, (found) => (found.startsWith('"') ? found : `{"\\u0000number":"${found}"}`));
  return JSON.parse(marked, (_, value: unknown) => {
    const text = typeof value === "object" && value !== null ? (value as Record<string, unknown>)["\u0000number"] : undefined;
    return typeof text === "string" ? new NumberText(text) : value;
  });
}

/** Read the answer to a query. Raises: SyntaxError, TypeError. */
export function readEntities(json: string): Entity[] {
  const value = objectOf(parseExactly(json))["value"];
  if (!Array.isArray(value)) throw new TypeError("the answer has no list of entities");
  return value.map(entityOf);
}

/** Read the answer to Get Entity. Raises: SyntaxError, TypeError. */
export function readEntity(json: string): Entity {
  return entityOf(parseExactly(json));
}

function entityOf(raw: unknown): Entity {
  const members = objectOf(raw);
  const etag = members["odata.etag"];
  const timestamp = members["Timestamp"];
  return {
    ...newEntityOf(members),
    timestamp: typeof timestamp === "string" ? timestamp : "",
    etag: typeof etag === "string" ? etag : "",
  };
}

/** Read one entity of a file or an answer: an object of JSON. Raises: TypeError. */
export function newEntityOf(raw: unknown): NewEntity {
  const members = objectOf(raw);
  const properties = new Map<string, TypedValue>();
  for (const [name, value] of Object.entries(members)) {
    if (OWN.test(name) || KEYS.includes(name) || value === null) continue;
    properties.set(name, valueOf(name, value, members[`${name}${ANNOTATION}`]));
  }
  return { partitionKey: keyOf(members, "PartitionKey"), rowKey: keyOf(members, "RowKey"), properties };
}

function keyOf(members: Readonly<Record<string, unknown>>, name: string): string {
  const value = members[name];
  if (typeof value !== "string") throw new TypeError(`an entity has no text ${name}`);
  return value;
}

function valueOf(name: string, value: unknown, annotated: unknown): TypedValue {
  const text = value instanceof NumberText ? value.text : typeof value === "boolean" ? String(value) : value;
  if (typeof text !== "string") throw new TypeError(`the property ${name} is neither text, number nor Boolean`);
  const type = typeof annotated === "string" ? typeNamed(annotated) : naturalType(value);
  return { type, text };
}

/** Return the type of a name with or without "Edm.". Raises: TypeError. */
export function typeNamed(name: string): EdmType {
  const found = EDM_TYPES.find((one) => one === name.replace(/^Edm\./, ""));
  if (!found) throw new TypeError(`${name.slice(0, 64)} is no type of properties`);
  return found;
}

function naturalType(value: unknown): EdmType {
  if (typeof value === "boolean") return "Boolean";
  if (!(value instanceof NumberText)) return "String";
  if (!/^-?\d+$/.test(value.text)) return "Double";
  const number = BigInt(value.text);
  return number >= -INT32_MAX && number < INT32_MAX ? "Int32" : "Int64";
}

/** Return the JSON of an entity that is sent, or of a part of it. */
export function entityJson(entity: NewEntity): string {
  const members: Record<string, string | boolean> = Object.create(null) as Record<string, string | boolean>;
  members["PartitionKey"] = entity.partitionKey;
  members["RowKey"] = entity.rowKey;
  for (const [name, { type, text }] of entity.properties) {
    const isPlain = type === "String" || (type === "Boolean" && /^(true|false)$/.test(text));
    if (!isPlain) members[`${name}${ANNOTATION}`] = `Edm.${type}`;
    members[name] = type === "Boolean" && isPlain ? text === "true" : text;
  }
  return JSON.stringify(members);
}

/** Return the entity with one property set; null removes it. */
export function withProperty<One extends NewEntity>(entity: One, name: string, value: TypedValue | null): One {
  const properties = new Map(entity.properties);
  if (value === null) properties.delete(name);
  else properties.set(name, value);
  return { ...entity, properties };
}

export function isSame(one: TypedValue | null | undefined, other: TypedValue | null | undefined): boolean {
  return one?.type === other?.type && one?.text === other?.text;
}

/** Whether two values are the same, however they are written: 1.0 and 1, a Guid in either case. */
export function isEqual(one: TypedValue | null, other: TypedValue | null): boolean {
  return one?.type === other?.type && usualText(one) === usualText(other);
}

function usualText(value: TypedValue | null): string | null {
  if (value === null) return null;
  const { type, text } = value;
  switch (type) {
    case "Int32":
    case "Int64": return /^-?\d+$/.test(text) ? String(BigInt(text)) : text;
    case "Double": return Number.isNaN(Number(text)) ? text : String(Number(text));
    case "Boolean":
    case "Guid": return text.toLowerCase();
    case "DateTime": return text.replace(/\.(\d*?)0*Z$/, (_, digits: string) => (digits ? `.${digits}Z` : "Z"));
    default: return text;
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof NumberText) {
    throw new TypeError("this is no object of JSON");
  }
  return value as Record<string, unknown>;
}
