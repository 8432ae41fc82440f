import { describe, expect, it } from "vitest";

import { propertiesOf } from "../../src/protocol/blob/blobs";
import { propertyRows } from "../../src/views/blobs/compared";
import { BEGINNING_LINES, hunksOf, lineDiff, linesOf, Steps, STEPS_MAX } from "../../src/views/blobs/line_diff";

const SIGNS = { same: " ", removed: "-", added: "+" } as const;

function shown(before: string, after: string): string[] {
  return lineDiff(before, after).lines.map((line) => SIGNS[line.kind] + line.text.replace("\n", ""));
}

/** The length of a longest common subsequence, by the table that every book has. */
function commonLength(a: readonly string[], b: readonly string[]): number {
  let row = Array<number>(b.length + 1).fill(0);
  for (const one of a) {
    const next = [0];
    b.forEach((other, at) => { next.push(one === other ? (row[at] ?? 0) + 1 : Math.max(row[at + 1] ?? 0, next[at] ?? 0)); });
    row = next;
  }
  return row[b.length] ?? 0;
}

describe("a comparison of lines", () => {
  it("shows what was removed and added between equal lines", () => {
    expect(shown("a\nb\nc\n", "a\nx\nc\nd\n")).toEqual([" a", "-b", "+x", " c", "+d"]);
    expect(shown("", "a\n")).toEqual(["+a"]);
    expect(shown("a\nb\n", "")).toEqual(["-a", "-b"]);
    expect(shown("a", "a\n")).toEqual(["-a", "+a"]);
    expect(shown("a\r\n", "a\n")).toEqual(["-a\r", "+a"]);
  });

  it("numbers the lines of both", () => {
    const { lines, removed, added } = lineDiff("a\nb\n", "b\nc\n");
    expect(lines.map((line) => [line.before, line.after])).toEqual([[1, null], [2, 1], [null, 2]]);
    expect([removed, added]).toEqual([1, 1]);
  });

  it("gives both texts back, and keeps as many lines as can be kept", () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    const text = (): string => Array.from({ length: random(14) }, () => `${"abc"[random(3)]}\n`).join("");
    for (let round = 0; round < 400; round += 1) {
      const [before, after] = [text(), text()];
      const { lines, extent } = lineDiff(before, after);
      const of = (left: string): string => lines.filter((line) => line.kind === "same" || line.kind === left).map((line) => line.text).join("");
      expect(of("removed")).toBe(before);
      expect(of("added")).toBe(after);
      expect(extent).toBe("exact");
      expect(lines.filter((line) => line.kind === "same")).toHaveLength(commonLength(linesOf(before), linesOf(after)));
    }
  });

  it("gives up where too much differs, and loses nothing", () => {
    const many = (name: string): string => Array.from({ length: 5000 }, (_, at) => `${name}${at}\n`).join("");
    const { lines, extent } = lineDiff(`first\n${many("a")}last\n`, `first\n${many("b")}last\n`);
    expect(extent).toBe("ends");
    expect(lines).toHaveLength(10_002);
    expect([lines[0]?.kind, lines.at(-1)?.kind]).toEqual(["same", "same"]);
  });

  it("leaves out equal lines far from a change", () => {
    const same = (from: number, to: number): string => Array.from({ length: to - from }, (_, at) => `${from + at}\n`).join("");
    const { lines } = lineDiff(`${same(0, 10)}old\n${same(10, 30)}`, `${same(0, 10)}new\n${same(10, 30)}`);
    const hunks = hunksOf(lines);
    expect(hunks.map((hunk) => [hunk.skipped, hunk.lines.length])).toEqual([[7, 8], [17, 0]]);
    expect(hunksOf(lineDiff("a\n", "a\n").lines)).toEqual([{ skipped: 1, lines: [] }]);
  });
});

describe("a comparison of much", () => {
  const MIB = 1024 * 1024;

  it("of 1 MiB of empty lines takes no step, and shows the beginning of both", () => {
    const steps = new Steps();
    const { lines, removed, added, extent } = lineDiff("\n".repeat(MIB), `x${"\n".repeat(MIB - 1)}`, steps);
    expect([removed, added, extent]).toEqual([0, 0, "none"]);
    expect(steps.left).toBe(STEPS_MAX);
    const numbers = (kind: string): number[] => lines.filter((line) => line.kind === kind).map((line) => (line.before ?? line.after) as number);
    const first = Array.from({ length: BEGINNING_LINES }, (_, at) => at + 1);
    expect([numbers("removed"), numbers("added"), numbers("same")]).toEqual([first, first, []]);
    expect(lines[BEGINNING_LINES]?.text).toBe("x\n");
  });

  it("shows a text of a few lines whole beside one of too many", () => {
    const { lines, extent } = lineDiff("one\ntwo", "\n".repeat(MIB));
    expect(extent).toBe("none");
    expect(lines.slice(0, 3).map((line) => line.text)).toEqual(["one\n", "two", "\n"]);
    expect(lines).toHaveLength(2 + BEGINNING_LINES);
  });

  it("ends where lines that repeat are compared on many diagonals", () => {
    const text = (name: string, period: number, lines: number): string =>
      `${name}\n${Array.from({ length: lines }, (_, at) => (at % period ? "\n" : "x\n")).join("")}${name}\n`;
    const many = new Steps();
    expect(lineDiff(text("a", 50, 90_000), text("b", 37, 90_000), many).extent).toBe("ends");
    expect(many.left).toBeLessThan(0);
    expect(many.left).toBeGreaterThan(-100_000); // the lines of one diagonal at most
    const few = new Steps();
    expect(lineDiff(text("a", 50, 5_000), text("b", 37, 5_000), few).extent).toBe("exact");
    expect(few.left).toBeGreaterThan(0);
  });
});

describe("properties of two states", () => {
  it("are listed where either has them, metadata too", () => {
    const before = propertiesOf(new Headers({ "content-length": "3", "content-type": "text/plain", "x-ms-meta-a": "1", "x-ms-meta-b": "2" }));
    const after = propertiesOf(new Headers({ "content-length": "4", "content-type": "text/plain", "x-ms-meta-a": "1", "x-ms-meta-c": "3" }));
    expect(propertyRows(before, after)).toEqual([
      { name: "Size", before: "3 B", after: "4 B" },
      { name: "Content type", before: "text/plain", after: "text/plain" },
      { name: "Metadata a", before: "1", after: "1" },
      { name: "Metadata b", before: "2", after: "" },
      { name: "Metadata c", before: "", after: "3" },
    ]);
  });
});
