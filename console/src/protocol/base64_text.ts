// Texts that many queue libraries send as base64. Only what is UTF-8 inside counts as such a text.

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
// Control characters that no text has; tabs and ends of lines are fine.
const NO_TEXT = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/;

/** Return the text inside; null if it is no base64, or no text is inside. */
export function fromBase64(text: string): string | null {
  if (text === "" || !BASE64.test(text)) return null;
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const decoded = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return NO_TEXT.test(decoded) ? null : decoded;
  } catch {
    return null;
  }
}

export function toBase64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
}
