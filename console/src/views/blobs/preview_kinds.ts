// What the first bytes of a blob are, by themselves and not by the type that is stored.

export const PREVIEW_BYTES = 64 * 1024;
/** Images and JSON are shown whole or not at all. */
export const WHOLE_BYTES = 4 * 1024 * 1024;
const CSV_ROWS = 100;
const CSV_COLUMNS = 50;

const IMAGES: readonly (readonly [type: string, start: readonly (number | null)[]])[] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
];

/** Return the type of an image that a browser can show without running anything; null for the rest. */
export function imageType(bytes: Uint8Array): string | null {
  return IMAGES.find(([, start]) => startsWith(bytes, start))?.[0] ?? null;
}

function startsWith(bytes: Uint8Array, start: readonly (number | null)[]): boolean {
  return bytes.length >= start.length && start.every((byte, at) => byte === null || byte === bytes[at]);
}

/** Return bytes as text; null if they are none. `isCut`: the last character may be broken. */
export function asText(bytes: Uint8Array, isCut: boolean): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}

/** Return JSON with line ends; null if the text is none. */
export function prettyJson(text: string): string | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

export function looksLikeCsv(name: string, contentType: string): boolean {
  return /\.(csv|tsv)$/i.test(name) || /^text\/(csv|tab-separated-values)\b/.test(contentType);
}

/**
 * Return the first rows of a CSV text. Source: RFC 4180; a tab or a semicolon may part the cells.
 *
 * `isCut`: the text goes on, so its last row, which may be broken, is left out.
 */
export function csvRows(text: string, isCut: boolean): string[][] {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const endCell = (): void => { row.push(cell); cell = ""; };
  const endRow = (): void => { endCell(); rows.push(row.slice(0, CSV_COLUMNS)); row = []; };
  for (let at = 0; at < text.length && rows.length < CSV_ROWS; at += 1) {
    const char = text[at] ?? "";
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') { cell += char; at += 1; }
      else isQuoted = false;
    } else if (char === '"' && cell === "") isQuoted = true;
    else if (char === separator) endCell();
    else if (char === "\n") endRow();
    else if (char !== "\r") cell += char;
  }
  if (!isCut && rows.length < CSV_ROWS && (cell !== "" || row.length)) endRow();
  return rows;
}

function separatorOf(text: string): string {
  const first = text.slice(0, text.indexOf("\n") < 0 ? undefined : text.indexOf("\n"));
  const count = (char: string): number => first.split(char).length;
  return ["\t", ";"].find((char) => count(char) > count(",")) ?? ",";
}

/** Return lines of 16 bytes each: where they are, as numbers, as characters. */
export function hexLines(bytes: Uint8Array, lines = 32): string {
  const shown: string[] = [];
  for (let at = 0; at < bytes.length && shown.length < lines; at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    const numbers = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const chars = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    shown.push(`${at.toString(16).padStart(8, "0")}  ${numbers.padEnd(47)}  ${chars}`);
  }
  return shown.join("\n");
}
