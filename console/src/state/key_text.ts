// The one place that holds the text of an account's key, for connection strings. It leaves at
// sign-out. Whoever needs it asks each time, and keeps no copy.

let text: string | null = null;

export function keepKeyText(key: string): void {
  text = key;
}

export function forgetKeyText(): void {
  text = null;
}

export function keyText(): string | null {
  return text;
}
