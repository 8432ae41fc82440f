// Entities in files: CSV and JSON, written and read piece by piece. Pure: no file is opened here.
//
// CSV: a line of names first. Beside the column of a property is one named NAME@type with its type; an
// empty type means that the entity has no such property. JSON: an array of objects as the Table service
// writes them; numbers keep their digits.

import { type Entity, type NewEntity, newEntityOf, parseExactly, type TypedValue, typeNamed } from "./entities";

export const FORMATS = ["csv", "json"] as const;
export type Format = (typeof FORMATS)[number];

const KEYS = ["PartitionKey", "RowKey", "Timestamp"];
const TYPE = "@type";
const LINE_END = "\r\n";
/** Far more than the text of an entity, which has at most 1 MiB. */
const PIECE_MAX_CHARS = 16 * 1024 * 1024;

/** Reads pieces of a file. `push` returns the entities that are whole; `end` what is left. */
export interface EntityReader {
  readonly push: (text: string) => NewEntity[];
  readonly end: () => NewEntity[];
}

export function entityReader(format: Format): EntityReader {
  return format === "csv" ? csvReader() : jsonReader();
}

// ---- JSON

export function jsonOf(entity: Entity): string {
  const members = [
    ["PartitionKey", JSON.stringify(entity.partitionKey)],
    ["RowKey", JSON.stringify(entity.rowKey)],
    ["Timestamp", JSON.stringify(entity.timestamp)],
    ...[...entity.properties].flatMap(([name, value]) => jsonMembers(name, value)),
  ] as const;
  return `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

function jsonMembers(name: string, { type, text }: TypedValue): (readonly [string, string])[] {
  const isShown =
    (type === "Boolean" && /^(true|false)$/.test(text)) ||
    (type === "Int32" && /^-?(0|[1-9]\d*)$/.test(text)) ||
    (type === "Double" && /^-?(0|[1-9]\d*)(\.\d+([eE][+-]?\d+)?|[eE][+-]?\d+)$/.test(text));
  if (isShown) return [[name, text]];
  if (type === "String") return [[name, JSON.stringify(text)]];
  return [[`${name}@odata.type`, JSON.stringify(`Edm.${type}`)], [name, JSON.stringify(text)]];
}

function jsonReader(): EntityReader {
  const objects = new JsonObjects();
  const read = (texts: string[]): NewEntity[] => texts.map((one) => newEntityOf(parseExactly(one)));
  return {
    push: (text) => read(objects.push(text)),
    end: () => {
      objects.end();
      return [];
    },
  };
}

/** Cuts a text into its objects: those of an array, or one after another. */
class JsonObjects {
  private text = "";
  private depth = 0;
  private isString = false;
  private isEscaped = false;

  push(chunk: string): string[] {
    const found: string[] = [];
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const char = chunk.charAt(at);
      if (this.depth === 0) {
        if (char === "{") start = at;
        else if (!/[\s[\],\uFEFF]/.test(char)) throw new SyntaxError(`${JSON.stringify(char)} stands where an object should begin`);
      }
      this.take(char);
      if (char === "}" && this.depth === 0) {
        found.push(this.text + chunk.slice(start, at + 1));
        this.text = "";
      }
    }
    if (this.depth > 0) this.text += chunk.slice(start);
    checkLength(this.text);
    return found;
  }

  end(): void {
    if (this.depth > 0) throw new SyntaxError("the file ends inside an object");
  }

  private take(char: string): void {
    if (this.isString) {
      if (this.isEscaped) this.isEscaped = false;
      else if (char === "\\") this.isEscaped = true;
      else if (char === '"') this.isString = false;
    } else if (char === '"') this.isString = true;
    else if (char === "{") this.depth += 1;
    else if (char === "}") this.depth -= 1;
  }
}

// ---- CSV

export function csvHead(names: readonly string[]): string {
  return csvLine([...KEYS, ...names.flatMap((name) => [name, `${name}${TYPE}`])]);
}

/** Return the line of an entity. Raises: Error if it has a property that is not among `names`. */
export function csvOf(entity: Entity, names: readonly string[]): string {
  const known = names.filter((name) => entity.properties.has(name)).length;
  if (known < entity.properties.size) throw new Error("an entity got a new property while the table was exported");
  const cells = names.flatMap((name) => {
    const value = entity.properties.get(name);
    return value ? [value.text, `Edm.${value.type}`] : ["", ""];
  });
  return csvLine([entity.partitionKey, entity.rowKey, entity.timestamp, ...cells]);
}

function csvLine(cells: readonly string[]): string {
  return cells.map((one) => (/[",\r\n]|^\s|\s$/.test(one) ? `"${one.replaceAll('"', '""')}"` : one)).join(",") + LINE_END;
}

function csvReader(): EntityReader {
  const lines = new CsvLines();
  let head: readonly string[] | null = null;
  const read = (found: string[][]): NewEntity[] =>
    found.flatMap((line) => {
      if (line.length === 1 && line[0] === "") return [];
      if (head !== null) return [csvEntity(head, line)];
      head = headOf(line);
      return [];
    });
  return { push: (text) => read(lines.push(text)), end: () => read(lines.end()) };
}

function headOf(line: readonly string[]): readonly string[] {
  const head = line.map((one, at) => (at === 0 ? one.replace(/^\uFEFF/, "") : one));
  for (const key of ["PartitionKey", "RowKey"]) {
    if (!head.includes(key)) throw new TypeError(`the first line names no column ${key}`);
  }
  return head;
}

function csvEntity(head: readonly string[], line: readonly string[]): NewEntity {
  if (line.length > head.length) throw new TypeError("a line has more cells than the first");
  const cell = (name: string): string | undefined => {
    const at = head.indexOf(name);
    return at < 0 ? undefined : (line[at] ?? "");
  };
  const properties = new Map<string, TypedValue>();
  for (const name of head) {
    if (KEYS.includes(name) || name.endsWith(TYPE)) continue;
    const text = cell(name) ?? "";
    const type = cell(`${name}${TYPE}`);
    // Without a type, an empty cell is a property that is not there.
    if (type) properties.set(name, { type: typeNamed(type), text });
    else if (text !== "") properties.set(name, { type: "String", text });
  }
  return { partitionKey: cell("PartitionKey") ?? "", rowKey: cell("RowKey") ?? "", properties };
}

/** Cuts a text into lines of cells. Source: RFC 4180; a line may end with "\n" alone, too. */
class CsvLines {
  private line: string[] = [];
  private cell = "";
  private state: "cell" | "quoted" | "quote" = "cell";
  private isAfterReturn = false;

  push(chunk: string): string[][] {
    const lines: string[][] = [];
    for (const char of chunk) {
      const isPair = char === "\n" && this.isAfterReturn;
      this.isAfterReturn = false;
      if (!isPair) this.take(char, lines);
    }
    checkLength(this.cell);
    return lines;
  }

  end(): string[][] {
    if (this.state === "quoted") throw new SyntaxError("the file ends inside quotation marks");
    const isEmpty = this.cell === "" && this.line.length === 0;
    const lines: string[][] = [];
    if (!isEmpty) this.endLine(lines);
    return lines;
  }

  private take(char: string, lines: string[][]): void {
    if (this.state === "quoted") {
      if (char === '"') this.state = "quote";
      else this.cell += char;
    } else if (char === '"' && (this.state === "quote" || this.cell === "")) {
      if (this.state === "quote") this.cell += '"';
      this.state = "quoted";
    } else if (char === ",") this.endCell();
    else if (char === "\r" || char === "\n") {
      this.isAfterReturn = char === "\r";
      this.endLine(lines);
    } else this.cell += char;
  }

  private endCell(): void {
    this.line.push(this.cell);
    this.cell = "";
    this.state = "cell";
  }

  private endLine(lines: string[][]): void {
    this.endCell();
    lines.push(this.line);
    this.line = [];
  }
}

function checkLength(text: string): void {
  if (text.length > PIECE_MAX_CHARS) throw new SyntaxError("one entity of the file is too long");
}
