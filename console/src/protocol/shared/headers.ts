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

/** Whether two lists say the same. Their order does not count, nor the case of a name, which HTTP loses. */
export function isSamePairs(one: Pairs, other: Pairs): boolean {
  return inOrder(one) === inOrder(other);
}

function inOrder(pairs: Pairs): string {
  return JSON.stringify(pairs.map(([name, value]) => JSON.stringify([name.toLowerCase(), value])).sort());
}
