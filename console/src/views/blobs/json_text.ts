// JSON for people: line ends and indentation are added, and nothing else is changed. A parser would
// round large numbers, and drop keys that come twice.

const RECORDS_MAX = 100;
/** Deeper levels are not moved further to the right. */
const LEVELS_MAX = 32;
export const SHOWN_CHARS_MAX = 1024 * 1024;
const SPACE = /\s/;

/** Whether a text is one object or list of JSON. */
export function isJson(text: string): boolean {
  if (!startsAsJson(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export function startsAsJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

export function looksLikeJson(name: string, contentType: string): boolean {
  return /\.json$/i.test(name) || /^[a-z]+\/([\w.-]+\+)?json\b/.test(contentType);
}

/** Return JSON with line ends, at most `SHOWN_CHARS_MAX` characters and a line of it. It may be cut anywhere. */
export function indented(text: string): string {
  let out = "";
  let level = 0;
  const newLine = (): string => `\n${"  ".repeat(Math.min(level, LEVELS_MAX))}`;
  for (let at = 0; at < text.length && out.length < SHOWN_CHARS_MAX; at += 1) {
    const char = text[at] ?? "";
    if (char === '"') {
      const end = endOfString(text, at);
      out += text.slice(at, end);
      at = end - 1;
    } else if (char === "{" || char === "[") {
      const next = nextPlace(text, at + 1);
      const closing = text[next];
      if (closing === "}" || closing === "]") {
        out += char + closing;
        at = next;
      } else {
        level += 1;
        out += char + newLine();
      }
    } else if (char === "}" || char === "]") {
      level = Math.max(0, level - 1);
      out += newLine() + char;
    } else if (char === ",") out += char + newLine();
    else if (char === ":") out += ": ";
    else if (!SPACE.test(char)) out += char;
  }
  return out;
}

/**
 * Return the records of a text with one JSON text on each line, indented, at most 100; null if it
 * is no such text. `isCut`: the text goes on, so its last line is left out.
 */
export function jsonLines(text: string, isCut: boolean): string[] | null {
  const lines = text.split("\n");
  if (isCut) lines.pop();
  const records = lines.filter((line) => line.trim() !== "").slice(0, RECORDS_MAX);
  return records.length > 1 && records.every(isJson) ? records.map(indented) : null;
}

/** Return the place after the string that begins at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

function nextPlace(text: string, start: number): number {
  let at = start;
  while (at < text.length && SPACE.test(text[at] ?? "")) at += 1;
  return at;
}
