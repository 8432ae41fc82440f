// What the headers of answers say in every service: times, metadata.

export type Pairs = readonly (readonly [name: string, value: string])[];

/** Return an HTTP time as RFC 3339; "" for none. */
export function timeOf(http: string): string {
  const at = Date.parse(http);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
}

export function metadataOf(headers: Headers): Pairs {
  const prefix = "x-ms-meta-";
  return [...headers].filter(([name]) => name.startsWith(prefix)).map(([name, value]): [string, string] => [name.slice(prefix.length), value]);
}
