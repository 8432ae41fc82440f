// How times, durations, sizes and rates are written. Times are local; UTC is in the title.

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const NUMBER = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function localTime(at: string): string {
  return LOCAL.format(new Date(at));
}

export function clockTime(at: string | number): string {
  return CLOCK.format(new Date(at));
}

export function utcTime(at: string): string {
  return new Date(at).toISOString().replace("T", " ").replace(/\.000Z$/, "Z").replace("Z", " UTC");
}

export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < SIZES.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${NUMBER.format(value)} ${SIZES[unit]}`;
}

export function countText(value: number): string {
  return WHOLE.format(value);
}

export function rateText(value: number): string {
  return value >= 1000 ? WHOLE.format(value) : NUMBER.format(value);
}

/** A duration of milliseconds, short: "0.42 ms", "17 ms", "1.2 s". */
export function durationText(ms: number): string {
  return ms >= 1000 ? `${NUMBER.format(ms / 1000)} s` : `${NUMBER.format(ms)} ms`;
}
