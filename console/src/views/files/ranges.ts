// The ranges of byte-range locks: 64 bits each, so they are texts and bigints.

/** Return the last byte of a range; null for one without bytes, which lies between two. */
export function lastByte(offset: string, length: string): string | null {
  const count = BigInt(length);
  return count === 0n ? null : String(BigInt(offset) + count - 1n);
}
