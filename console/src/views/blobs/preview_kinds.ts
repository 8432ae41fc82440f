// What the first bytes of a blob are, by themselves and not by the type that is stored.

export const PREVIEW_BYTES = 64 * 1024;
/** Larger images are not shown. */
export const IMAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Of larger texts only the beginning is read. */
export const TEXT_BYTES_MAX = 1024 * 1024;

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
