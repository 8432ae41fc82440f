// Which lines of a text became which of another. Source: E. Myers, "An O(ND) difference algorithm
// and its variations" (1986), the first of them.

export interface Line {
  readonly kind: "same" | "removed" | "added";
  /** Its number in the text before and in the one after, from 1; null where it is not. */
  readonly before: number | null;
  readonly after: number | null;
  /** With its end of line, if it has one. */
  readonly text: string;
}

/** Equal lines that are left out, and lines that are shown after them. */
export interface Hunk {
  readonly skipped: number;
  readonly lines: readonly Line[];
}

export interface LineDiff {
  readonly lines: readonly Line[];
  readonly removed: number;
  readonly added: number;
  /**
   * "ends": too much differs, and the part between the first and the last change is not compared.
   * "none": there are too many lines, and these are the first of both texts.
   */
  readonly extent: "exact" | "ends" | "none";
}

/** More changes than these are not looked for: memory grows with their square. */
const CHANGES_MAX = 2000;
/** More lines of both than these are not compared: each takes a hundred bytes of memory. */
export const LINES_MAX = 200_000;
/** So many lines of each are shown where none are compared. */
export const BEGINNING_LINES = 1000;
/** More steps than these are not taken: where lines repeat, they grow with lines and changes. */
export const STEPS_MAX = 8_000_000;

/** How many steps a comparison may still take: a line that is compared, or a diagonal that is looked at. */
export class Steps {
  constructor(public left = STEPS_MAX) {}
}

export function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

export function lineDiff(before: string, after: string, steps = new Steps()): LineDiff {
  if (lineCount(before, LINES_MAX) + lineCount(after, LINES_MAX) > LINES_MAX) return beginnings(before, after);
  const old = linesOf(before);
  const now = linesOf(after);
  const [a, b] = numbered(old, now);
  const least = Math.min(a.length, b.length);
  let start = 0;
  while (start < least && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < least - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = keptPairs(a.subarray(start, a.length - end), b.subarray(start, b.length - end), steps);
  const kept = [
    ...Array.from({ length: start }, (_, at): Pair => [at, at]),
    ...(middle ?? []).map(([left, right]): Pair => [left + start, right + start]),
    ...Array.from({ length: end }, (_, at): Pair => [a.length - end + at, b.length - end + at]),
  ];
  return {
    lines: linesBetween(old, now, kept),
    removed: old.length - kept.length,
    added: now.length - kept.length,
    extent: middle ? "exact" : "ends",
  };
}

/** Return what changed, each with `context` equal lines around it. */
export function hunksOf(lines: readonly Line[], context = 3): Hunk[] {
  const near = new Set<number>();
  lines.forEach((line, at) => {
    if (line.kind === "same") return;
    for (let one = at - context; one <= at + context; one += 1) near.add(one);
  });
  const hunks: { skipped: number; lines: Line[] }[] = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (!near.has(at)) {
      skipped += 1;
      return;
    }
    const last = hunks.at(-1);
    if (last && !skipped) last.lines.push(line);
    else hunks.push({ skipped, lines: [line] });
    skipped = 0;
  });
  return skipped ? [...hunks, { skipped, lines: [] }] : hunks;
}

/** Return how many ends of lines a text has; no more than `most` and one are counted. */
function lineCount(text: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0 && count <= most; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

function beginnings(before: string, after: string): LineDiff {
  const lines = linesBetween(firstLines(before), firstLines(after), []);
  return { lines, removed: 0, added: 0, extent: "none" };
}

function firstLines(text: string): string[] {
  let end = 0;
  for (let count = 0; count < BEGINNING_LINES && end < text.length; count += 1) end = text.indexOf("\n", end) + 1 || text.length;
  return linesOf(text.slice(0, end));
}

type Pair = readonly [before: number, after: number];

/** Return numbers for lines: equal lines have equal ones. */
function numbered(old: readonly string[], now: readonly string[]): [Int32Array, Int32Array] {
  const numbers = new Map<string, number>();
  const numberOf = (line: string): number => {
    const found = numbers.get(line) ?? numbers.size;
    numbers.set(line, found);
    return found;
  };
  return [Int32Array.from(old, numberOf), Int32Array.from(now, numberOf)];
}

function linesBetween(old: readonly string[], now: readonly string[], kept: readonly Pair[]): Line[] {
  const lines: Line[] = [];
  let left = 0;
  let right = 0;
  const upTo = (toLeft: number, toRight: number): void => {
    for (; left < toLeft; left += 1) lines.push({ kind: "removed", before: left + 1, after: null, text: old[left] ?? "" });
    for (; right < toRight; right += 1) lines.push({ kind: "added", before: null, after: right + 1, text: now[right] ?? "" });
  };
  for (const [toLeft, toRight] of kept) {
    upTo(toLeft, toRight);
    lines.push({ kind: "same", before: left + 1, after: right + 1, text: old[left] ?? "" });
    left += 1;
    right += 1;
  }
  upTo(old.length, now.length);
  return lines;
}

/** Return the pairs of a longest common part; null beyond `CHANGES_MAX` changes or the steps. */
function keptPairs(a: Int32Array, b: Int32Array, steps: Steps): Pair[] | null {
  const most = Math.min(a.length + b.length, CHANGES_MAX);
  const middle = most + 1;
  /** How far one comes on each diagonal (place in `a` less place in `b`) with the changes so far. */
  const furthest = new Int32Array(2 * most + 3);
  const rounds: Int32Array[] = [];
  for (let changes = 0; changes <= most; changes += 1) {
    rounds.push(furthest.slice(middle - changes - 1, middle + changes + 2));
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const start = startOf(furthest, middle, changes, diagonal);
      let x = start;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x += 1;
      steps.left -= x - start + 1;
      if (steps.left < 0) return null;
      furthest[middle + diagonal] = x;
      if (x >= a.length && x - diagonal >= b.length) return wayBack(rounds, a.length, b.length);
    }
  }
  return null;
}

/** Whether the best way to a diagonal in this round is a line that was added, not one that was removed. */
function isAdded(furthest: Int32Array, middle: number, changes: number, diagonal: number): boolean {
  // The diagonal above the highest so far has 0, so it never wins.
  return diagonal === -changes || (furthest[middle + diagonal - 1] ?? 0) < (furthest[middle + diagonal + 1] ?? 0);
}

/** Return where a diagonal begins in this round, before the equal lines on it. */
function startOf(furthest: Int32Array, middle: number, changes: number, diagonal: number): number {
  if (isAdded(furthest, middle, changes, diagonal)) return furthest[middle + diagonal + 1] ?? 0;
  return (furthest[middle + diagonal - 1] ?? 0) + 1;
}

function wayBack(rounds: readonly Int32Array[], aLength: number, bLength: number): Pair[] {
  const pairs: Pair[] = [];
  let x = aLength;
  let y = bLength;
  for (let changes = rounds.length - 1; changes >= 0; changes -= 1) {
    const furthest = rounds[changes] ?? new Int32Array(0);
    const middle = changes + 1;
    const diagonal = x - y;
    const start = startOf(furthest, middle, changes, diagonal);
    while (x > start && x > 0 && y > 0) {
      x -= 1;
      y -= 1;
      pairs.push([x, y]);
    }
    if (isAdded(furthest, middle, changes, diagonal)) y -= 1;
    else x -= 1;
  }
  return pairs.reverse();
}
