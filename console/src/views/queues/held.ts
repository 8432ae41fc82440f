// Messages that this page got, and when others see them again.

import type { HeldMessage } from "../../protocol/queues";

/** A message that this page holds. `endsAt`: by performance.now(), which no change of clocks moves. */
export interface Kept extends HeldMessage {
  readonly endsAt: number;
}

export function keptOf(message: HeldMessage): Kept {
  return { ...message, endsAt: performance.now() + message.invisibleMs };
}
