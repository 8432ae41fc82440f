import { describe, expect, it } from "vitest";

import { moved, rowsInSight } from "../../src/components/grid";
import { type Entity, type TypedValue, withProperty } from "../../src/protocol/entities";
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
  const marks = (theirs: Entity | null, value: TypedValue | null): unknown[] => {
    const mine = withProperty(theirs ?? seen, "A", value);
    return differences({ seen, theirs, mine, change: { name: "A", value } }).map((one) => [one.name, one.byMe, one.byThem]);
  };
  const seen = entity({ B: "1", A: "1" });
  const nine: TypedValue = { type: "String", text: "9" };

  it("marks what differs, and says who changed it", () => {
    expect(marks(entity({ B: "2", A: "1", D: "1" }), nine)).toEqual([["A", true, false], ["B", false, false], ["D", false, false]]);
    expect(marks(entity({ B: "1", A: "3" }), nine)).toEqual([["A", true, true], ["B", false, false]]);
  });

  it("marks nothing that is equal in both versions", () => {
    expect(marks(entity({ B: "2", A: "9" }), nine)).toEqual([["A", false, false], ["B", false, false]]);
  });

  it("marks one's own change where the entity is gone", () => {
    expect(marks(null, nine)).toEqual([["A", true, false], ["B", false, false]]);
    expect(marks(null, null)).toEqual([["A", true, false], ["B", false, false]]);
  });
});

describe("columns", () => {
  it("have the type of most values", () => {
    const one = entity({ A: "1" });
    const other: Entity = { ...one, properties: new Map([["A", { type: "Int32", text: "1" }], ["B", { type: "Double", text: "1" }]]) };
    expect(propertyColumns([one, other, other]).map(({ name, type }) => [name, type])).toEqual([["A", "Int32"], ["B", "Double"]]);
  });
});
