// The first rows of a CSV text. Source: RFC 4180; files whose cells are parted otherwise, or whose
// lines end by a carriage return alone, are read too.

const ROWS_MAX = 100;
const COLUMNS_MAX = 50;
const CELL_CHARS_MAX = 300;
const SEPARATORS = [",", "\t", ";", "|"];

export interface CsvPart {
  /** The first of them has the headings. Cells are cut after 300 characters. */
  readonly rows: readonly (readonly string[])[];
  /** How many columns the widest row has; 50 are shown. */
  readonly columns: number;
}

export function looksLikeCsv(name: string, contentType: string): boolean {
  return /\.(csv|tsv)$/i.test(name) || /^text\/(csv|tab-separated-values)\b/.test(contentType);
}

/** Read rows. `isCut`: the text goes on, so its last row, which may be broken, is left out. */
export function readCsv(text: string, isCut: boolean): CsvPart {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let columns = 0;
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const endCell = (): void => {
    row.push(cell.length > CELL_CHARS_MAX ? `${cell.slice(0, CELL_CHARS_MAX)}\u2026` : cell);
    cell = "";
  };
  const endRow = (): void => {
    endCell();
    columns = Math.max(columns, row.length);
    rows.push(row.slice(0, COLUMNS_MAX));
    row = [];
  };
  let at = 0;
  for (; at < text.length && rows.length <= ROWS_MAX; at += 1) {
    const char = text[at] ?? "";
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') { cell += char; at += 1; }
      else isQuoted = false;
    } else if (char === '"' && cell === "") isQuoted = true;
    else if (char === separator) endCell();
    else if (char === "\n" || (char === "\r" && text[at + 1] !== "\n")) endRow();
    else if (char !== "\r") cell += char;
  }
  if (at === text.length && !isCut && (cell !== "" || row.length)) endRow();
  return { rows, columns };
}

/** The character that the first row has most of, outside of quotes. */
function separatorOf(text: string): string {
  const counts = new Map(SEPARATORS.map((one) => [one, 0]));
  let isQuoted = false;
  for (const char of text) {
    if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (char === "\n" || char === "\r")) break;
    else if (!isQuoted && counts.has(char)) counts.set(char, (counts.get(char) ?? 0) + 1);
  }
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
}
