// Repeating what may be repeated, when the server or the network fails for a moment.

import { NoAnswer, ServiceError } from "../errors";

export const TRIES = 4;

/** Do what may be repeated; repeat it some times if the server or the network fails. */
export async function tried(signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await act();
      return;
    } catch (error) {
      const isPassing = error instanceof NoAnswer || (error instanceof ServiceError && [500, 503].includes(error.status));
      if (signal.aborted || !isPassing || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
      signal.throwIfAborted();
    }
  }
}
