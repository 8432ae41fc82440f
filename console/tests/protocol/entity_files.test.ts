import { describe, expect, it } from "vitest";

import type { Entity, EdmType, NewEntity } from "../../src/protocol/entities";
import { csvHead, csvOf, entityReader, type Format, jsonOf } from "../../src/protocol/entity_files";

const entity = (rowKey: string, properties: Record<string, readonly [EdmType, string]>): Entity => ({
  partitionKey: 'p,"q"', rowKey, timestamp: "2026-01-01T00:00:00Z", etag: "e",
  properties: new Map(Object.entries(properties).map(([name, [type, text]]) => [name, { type, text }])),
});

const ENTITIES = [
  entity("1", { Text: ["String", ' a "b"\r\n{c},\n '], Empty: ["String", ""], Big: ["Int64", "9223372036854775807"] }),
  entity("ü \u{1F512}", { Whole: ["Double", "1.0"], Odd: ["Double", "3"], No: ["Double", "NaN"], Small: ["Int32", "-7"] }),
  entity("", { Yes: ["Boolean", "true"], Raw: ["Binary", "AP8="], Text: ["String", "{\\\"}"] }),
];

const written: Readonly<Record<Format, string>> = {
  json: `[${ENTITIES.map(jsonOf).join(",\n")}]`,
  csv: (() => {
    const names = [...new Set(ENTITIES.flatMap((one) => [...one.properties.keys()]))];
    return csvHead(names) + ENTITIES.map((one) => csvOf(one, names)).join("");
  })(),
};

function readIn(format: Format, text: string, size: number): NewEntity[] {
  const reader = entityReader(format);
  const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size));
  return [...pieces.flatMap((one) => reader.push(one)), ...reader.end()];
}

const plain = ({ partitionKey, rowKey, properties }: NewEntity) => [partitionKey, rowKey, Object.fromEntries(properties)];

describe.each(["csv", "json"] as const)("a file of %s", (format) => {
  it.each([1, 2, 7, 10_000])("gives back each entity, read by %i characters", (size) => {
    expect(readIn(format, written[format], size).map(plain)).toEqual(ENTITIES.map(plain));
  });

  it("is refused if it ends too early", () => {
    const text = format === "csv" ? 'PartitionKey,RowKey\r\n"a' : '[{"PartitionKey":"a"';
    expect(() => readIn(format, text, 100)).toThrow(SyntaxError);
  });
});

describe("CSV of other programs", () => {
  it("has texts without types, ends of lines of any kind, and a mark at its start", () => {
    const found = readIn("csv", "\uFEFFRowKey,PartitionKey,A,B\n1,p,x,\r2,p,,y\r\n\n", 100);
    expect(found.map(plain)).toEqual([
      ["p", "1", { A: { type: "String", text: "x" } }],
      ["p", "2", { B: { type: "String", text: "y" } }],
    ]);
  });

  it("is refused without keys, with an unknown type, and with more cells than names", () => {
    expect(() => readIn("csv", "PartitionKey,A\r\n", 100)).toThrow("RowKey");
    expect(() => readIn("csv", "PartitionKey,RowKey,A,A@type\r\np,r,1,Edm.Money\r\n", 100)).toThrow("Edm.Money");
    expect(() => readIn("csv", "PartitionKey,RowKey\r\np,r,1\r\n", 100)).toThrow("more cells");
  });
});

describe("JSON of other programs", () => {
  it("may be one object after another", () => {
    expect(readIn("json", '{"PartitionKey":"p","RowKey":"1","N":5}\n{"PartitionKey":"p","RowKey":"2"}\n', 5)).toHaveLength(2);
    expect(() => readIn("json", "hello", 5)).toThrow(SyntaxError);
  });
});

describe("an entity with a property that came while the file was written", () => {
  it("is never written in part", () => {
    expect(() => csvOf(entity("1", { A: ["String", "x"] }), ["B"])).toThrow("new property");
  });
});
