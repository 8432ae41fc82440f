import { describe, expect, it } from "vitest";

import { looksLikeCsv, readCsv } from "../../src/views/blobs/csv";

const rows = (text: string, isCut = false) => readCsv(text, isCut).rows;

describe("CSV", () => {
  it("has quotes, quotes in quotes, separators and line ends in quotes", () => {
    expect(rows('a,b\r\n"x, ""y""\nz",2\r\n')).toEqual([["a", "b"], ['x, "y"\nz', "2"]]);
    expect(rows('a"b,c\n')).toEqual([['a"b', "c"]]);
  });

  it("is parted by what its first row has most of, outside of quotes", () => {
    expect(rows("a;b\n1,5;2")).toEqual([["a", "b"], ["1,5", "2"]]);
    expect(rows("a\tb\n1\t2")).toEqual([["a", "b"], ["1", "2"]]);
    expect(rows("a|b\n1|2")).toEqual([["a", "b"], ["1", "2"]]);
    expect(rows('"a;b;c",d\n1,2')).toEqual([["a;b;c", "d"], ["1", "2"]]);
    expect(rows("only\none")).toEqual([["only"], ["one"]]);
  });

  it("ends its lines in three ways, and may lack the last end", () => {
    for (const end of ["\n", "\r\n", "\r"]) expect(rows(`a,b${end}1,2`)).toEqual([["a", "b"], ["1", "2"]]);
    expect(rows("a,\n,b\n")).toEqual([["a", ""], ["", "b"]]);
    expect(rows("")).toEqual([]);
  });

  it("leaves out the last row of a text that goes on", () => {
    expect(rows("a,b\n1,2\n3,", true)).toEqual([["a", "b"], ["1", "2"]]);
    expect(rows('a,b\n1,"never closed\n2,3\n', true)).toEqual([["a", "b"]]);
  });

  it("shows a bounded part", () => {
    expect(rows("x\n".repeat(1000))).toHaveLength(101);
    const wide = readCsv(`${"x,".repeat(199)}x\n`, false);
    expect(wide.columns).toBe(200);
    expect(wide.rows[0]).toHaveLength(50);
    expect(rows("y".repeat(10_000))[0]?.[0]).toBe(`${"y".repeat(300)}\u2026`);
  });

  it("is known by its name or its type", () => {
    expect(looksLikeCsv("x.CSV", "")).toBe(true);
    expect(looksLikeCsv("x", "text/csv; charset=utf-8")).toBe(true);
    expect(looksLikeCsv("x.txt", "text/plain")).toBe(false);
  });
});
