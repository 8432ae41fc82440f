// The lengths of queues while they were watched in this page. The server keeps no history of them.

import { type ReadonlySignal, signal } from "@preact/signals";

import type { QueueAt } from "../../protocol/queues";
import { atSignOut } from "../../state/session";

export interface Samples {
  readonly all: ReadonlySignal<{ readonly times: readonly number[]; readonly values: readonly number[] }>;
  readonly add: (timeS: number, length: number) => void;
}

const SAMPLES_MAX = 1_800;
const QUEUES_MAX = 20;
const kept = new Map<string, Samples>();

/** Return what was seen of a queue. The queue that was looked at longest ago is forgotten first. */
export function samplesOf(at: QueueAt): Samples {
  const key = `${at.account}/${at.queue}`;
  const found = kept.get(key) ?? newSamples();
  kept.delete(key);
  kept.set(key, found);
  const oldest = kept.keys().next().value;
  if (kept.size > QUEUES_MAX && oldest !== undefined) kept.delete(oldest);
  return found;
}

function newSamples(): Samples {
  const all = signal<{ readonly times: readonly number[]; readonly values: readonly number[] }>({ times: [], values: [] });
  return {
    all,
    add: (timeS, length) => {
      const { times, values } = all.value;
      all.value = { times: [...times, timeS].slice(-SAMPLES_MAX), values: [...values, length].slice(-SAMPLES_MAX) };
    },
  };
}

atSignOut(() => { kept.clear(); });
