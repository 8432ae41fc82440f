import { describe, expect, it } from "vitest";

import { moved, rowsInSight } from "../../src/components/grid";
import type { Entity } from "../../src/protocol/entities";
import { typedText } from "../../src/views/tables/cell_editor";
import { propertyColumns } from "../../src/views/tables/columns";
import { differences } from "../../src/views/tables/saving";

const entity = (properties: Record<string, string>): Entity => ({
  partitionKey: "p", rowKey: "r", timestamp: "", etag: "e",
  properties: new Map(Object.entries(properties).map(([name, text]) => [name, { type: "String", text }])),
});

describe("the grid", () => {
  it("draws rows near the window, and always the one with the focus", () => {
    expect(rowsInSight(0, 360, 5, 0)).toEqual([0, 1, 2, 3, 4]);
    const rows = rowsInSight(36_000, 360, 100_000, 3);
    expect(rows[0]).toBe(3);
    expect(rows[1]).toBe(992);
    expect(rows.length).toBeLessThan(40);
    expect(rowsInSight(0, 360, 1000, 999).at(-1)).toBe(999);
  });

  it("moves as a grid does, and stays inside", () => {
    const go = (key: string, ctrlKey = false) => moved({ key, ctrlKey, metaKey: false }, { row: 1, column: 1 }, 10, 3, 5);
    expect(go("ArrowDown")).toEqual({ row: 2, column: 1 });
    expect(go("ArrowLeft")).toEqual({ row: 1, column: 0 });
    expect(go("Home")).toEqual({ row: 1, column: 0 });
    expect(go("End", true)).toEqual({ row: 9, column: 2 });
    expect(go("Home", true)).toEqual({ row: 0, column: 0 });
    expect(go("PageDown")).toEqual({ row: 6, column: 1 });
    expect(go("PageUp")).toEqual({ row: 0, column: 1 });
    expect(go("a")).toBeNull();
  });
});

describe("an edited text", () => {
  it("keeps its ends of lines", () => {
    expect(typedText("a\nb", "a\r\nb")).toBe("a\r\nb");
    expect(typedText("a\nc", "a\r\nb")).toBe("a\r\nc");
    expect(typedText("a\nc", "a\nb")).toBe("a\nc");
    expect(typedText("a\nb", "a\rb")).toBe("a\rb");
  });
});

describe("a conflict", () => {
  it("says who changed what", () => {
    const seen = entity({ A: "1", B: "1", C: "1" });
    const theirs = entity({ A: "1", B: "2", D: "1" });
    const mine = entity({ A: "9", B: "2", D: "1" });
    const found = differences({ seen, theirs, mine, change: { name: "A", value: { type: "String", text: "9" } } });
    expect(found.map((one) => [one.name, one.byMe, one.byThem])).toEqual([
      ["A", true, false],
      ["B", false, true],
      ["D", false, true],
      ["C", false, true],
    ]);
  });
});

describe("columns", () => {
  it("have the type of most values", () => {
    const one = entity({ A: "1" });
    const other: Entity = { ...one, properties: new Map([["A", { type: "Int32", text: "1" }], ["B", { type: "Double", text: "1" }]]) };
    expect(propertyColumns([one, other, other]).map(({ name, type }) => [name, type])).toEqual([["A", "Int32"], ["B", "Double"]]);
  });
});
