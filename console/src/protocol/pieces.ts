// A file read and sent in pieces, some at a time. All uploads of the page share the slots, so that
// only a few pieces are in memory, however many files are sent.

import { Slots } from "./slots";

export const PIECES_IN_MEMORY = 4;
const slots = new Slots(PIECES_IN_MEMORY);

export interface Piece {
  /** Counted from 0. */
  readonly index: number;
  /** Where it begins, in bytes. */
  readonly offset: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Send all pieces of a file. Raises: what `each` raises first, and ends the others; the signal's reason. */
export async function inPieces(file: File, pieceBytes: number, signal: AbortSignal, each: (piece: Piece, signal: AbortSignal) => Promise<void>): Promise<void> {
  const count = Math.ceil(file.size / pieceBytes);
  const ends = new AbortController();
  const both = AbortSignal.any([signal, ends.signal]);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      const give = await slots.take(both);
      try {
        const offset = index * pieceBytes;
        const bytes = new Uint8Array(await file.slice(offset, offset + pieceBytes).arrayBuffer());
        await each({ index, offset, bytes }, both);
      } finally {
        give();
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(PIECES_IN_MEMORY, count) }, work));
  } catch (error) {
    ends.abort();
    throw error;
  }
}
