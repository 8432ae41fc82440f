import { describe, expect, it } from "vitest";

import { type EdmType, entityJson, isEqual, newEntityOf, parseExactly, readEntities, readEntity } from "../../src/protocol/entities";
import { literal, withCondition } from "../../src/protocol/filter_text";
import { entityPath } from "../../src/protocol/tables";

const ENTITY = String.raw`{"odata.metadata":"m","odata.etag":"W/\"e\"","PartitionKey":"p","RowKey":"r","Timestamp":"2026-01-02T03:04:05.1234567Z",
  "Big@odata.type":"Edm.Int64","Big":"9223372036854775807","Small":7,"Whole":1.0,"Tiny":5e-324,"NoNumber@odata.type":"Edm.Double","NoNumber":"NaN",
  "Yes":true,"Text":"a \"1.50\" {2}","When@odata.type":"Edm.DateTime","When":"2026-01-02T03:04:05.1234567Z","Gone":null,"__proto__":"x"}`;

describe("entities", () => {
  it("keep each digit and each type", () => {
    const { etag, timestamp, properties } = readEntity(ENTITY);
    expect(etag).toBe('W/"e"');
    expect(timestamp).toBe("2026-01-02T03:04:05.1234567Z");
    expect(properties.get("Big")).toEqual({ type: "Int64", text: "9223372036854775807" });
    expect(properties.get("Small")).toEqual({ type: "Int32", text: "7" });
    expect(properties.get("Whole")).toEqual({ type: "Double", text: "1.0" });
    expect(properties.get("Tiny")).toEqual({ type: "Double", text: "5e-324" });
    expect(properties.get("NoNumber")).toEqual({ type: "Double", text: "NaN" });
    expect(properties.get("Yes")).toEqual({ type: "Boolean", text: "true" });
    expect(properties.get("Text")).toEqual({ type: "String", text: 'a "1.50" {2}' });
    expect(properties.get("When")?.type).toBe("DateTime");
    expect(properties.has("Gone")).toBe(false);
  });

  it("come back from what is sent", () => {
    const entity = readEntity(ENTITY);
    expect([...newEntityOf(parseExactly(entityJson(entity))).properties]).toEqual([...entity.properties]);
    expect(entityJson(entity)).toContain('"Whole@odata.type":"Edm.Double","Whole":"1.0"');
  });

  it("are Int64 where 32 bits are too few, at the bound", () => {
    const of = (number: string): string | undefined =>
      newEntityOf(parseExactly(`{"PartitionKey":"","RowKey":"","N":${number}}`)).properties.get("N")?.type;
    expect(of("2147483647")).toBe("Int32");
    expect(of("2147483648")).toBe("Int64");
    expect(of("-2147483648")).toBe("Int32");
    expect(of("-2147483649")).toBe("Int64");
  });

  it("are refused if they are none", () => {
    expect(() => readEntities("{}")).toThrow(TypeError);
    expect(() => readEntities("[01]")).toThrow(SyntaxError);
    expect(() => newEntityOf(parseExactly('{"PartitionKey":1,"RowKey":"r"}'))).toThrow(TypeError);
    expect(() => newEntityOf(parseExactly('{"PartitionKey":"p","RowKey":"r","A":[1]}'))).toThrow(TypeError);
  });
});

describe("entityPath", () => {
  it("is one segment whatever the keys have, and doubles quotation marks", () => {
    const path = entityPath("t", { partitionKey: "a/b\\c#d?e", rowKey: "it's 100%" });
    expect(path).toBe("/t(PartitionKey='a%2Fb%5Cc%23d%3Fe',RowKey='it%27%27s%20100%25')");
    expect(new URL(path, "http://h").pathname).toBe(path);
  });
});

describe("filters", () => {
  it("write each type", () => {
    expect(literal("String", "it's")).toBe("'it''s'");
    expect(literal("Int64", " 5 ")).toBe("5L");
    expect(literal("Double", "1.5")).toBe("1.5");
    expect(literal("DateTime", "2026-01-01T00:00:00Z")).toBe("datetime'2026-01-01T00:00:00Z'");
    expect(literal("Guid", "0")).toBe("guid'0'");
    expect(literal("Binary", "AP8=")).toBe("X'00ff'");
    expect(() => literal("Binary", "%")).toThrow(TypeError);
  });

  it("join conditions, and keep an `or` together", () => {
    expect(withCondition("", "A", "eq", "Int32", "1")).toBe("A eq 1");
    expect(withCondition("A eq 1", "B", "lt", "String", "x")).toBe("A eq 1 and B lt 'x'");
    expect(withCondition("A eq 1 or A eq 2", "B", "eq", "Boolean", "true")).toBe("(A eq 1 or A eq 2) and B eq true");
  });
});

describe("values", () => {
  const equal = (type: EdmType, one: string, other: string): boolean => isEqual({ type, text: one }, { type, text: other });

  it("are equal however they are written", () => {
    expect(equal("Double", "1.0", "1")).toBe(true);
    expect(equal("Double", "NaN", "NaN")).toBe(true);
    expect(equal("Int64", "007", "7")).toBe(true);
    expect(equal("Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833", "c9da6455-213d-42c9-9a79-3e9149a57833")).toBe(true);
    expect(equal("DateTime", "2026-01-02T03:04:05.1200000Z", "2026-01-02T03:04:05.12Z")).toBe(true);
    expect(equal("DateTime", "2026-01-02T03:04:00.0000000Z", "2026-01-02T03:04:00Z")).toBe(true);
    expect(isEqual(null, null)).toBe(true);
  });

  it("differ by a digit, a letter's case in a text, or a type", () => {
    expect(equal("Int64", "9007199254740993", "9007199254740992")).toBe(false);
    expect(equal("DateTime", "2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05.1234568Z")).toBe(false);
    expect(equal("String", "a", "A")).toBe(false);
    expect(equal("Double", "Infinity", "-Infinity")).toBe(false);
    expect(isEqual({ type: "Int32", text: "1" }, { type: "Double", text: "1" })).toBe(false);
    expect(isEqual({ type: "String", text: "" }, null)).toBe(false);
  });
});
