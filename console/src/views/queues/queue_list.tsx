// The list of queues, with lengths that are asked for again while it is shown.

import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { createQueue, deleteQueue, listQueues, queueLength } from "../../protocol/queues";
import { repeat } from "../../state/live";
import { addressOf } from "../../state/router";
import { currentSession } from "../../state/session";
import { countText } from "../../state/times";
import { complain } from "../../state/toasts";
import { texts } from "../../texts";
import { PlaceList, type PlacePage } from "../places/place_list";
import { lackingPlace } from "../places/rights";

const PAGE_QUEUES = 50;
const LENGTHS_EVERY_MS = 5_000;
const ASKED_AT_ONCE = 4;
const words = texts.queues;

export function QueueList({ owner }: { readonly owner: string }): JSX.Element {
  const page = useSignal<PlacePage<string> | null>(null);
  const lengths = useLengths(owner, page);
  return (
    <PlaceList<string>
      words={words}
      page={page}
      list={(query, signal) => listQueues(currentSession().credential, owner, { ...query, maxresults: PAGE_QUEUES }, signal)}
      nameOf={(name) => name}
      hrefOf={(name) => addressOf("queues", [owner, name])}
      columns={[{ key: "length", header: words.lengthColumn, class: "number", cell: (name) => lengthText(lengths.value.get(name)) }]}
      make={async (queue) => {
        const isNew = await createQueue(currentSession().credential, { account: owner, queue });
        return isNew ? words.made(queue) : words.wasThere(queue);
      }}
      lacks={{ make: lackingPlace("make"), remove: lackingPlace("remove") }}
      remove={(queue) => removeQueue(owner, queue)}
    />
  );
}

export function removeQueue(account: string, queue: string): Promise<void> {
  return deleteQueue(currentSession().credential, { account, queue });
}

function lengthText(length: number | undefined): string {
  return length === undefined ? texts.data.unknown : countText(length);
}

function useLengths(owner: string, page: Signal<PlacePage<string> | null>): Signal<ReadonlyMap<string, number>> {
  const lengths = useSignal<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    const names = page.value?.rows ?? [];
    if (!names.length) return undefined;
    const failed = { once: false };
    return repeat((signal) => askLengths(owner, names, lengths, signal), LENGTHS_EVERY_MS, (problem) => {
      if (!failed.once) complain(problem);
      failed.once = true;
    });
  }, [owner, page.value]);
  return lengths;
}

// A few at a time: a page of queues must not hold all of the browser's connections.
async function askLengths(owner: string, names: readonly string[], lengths: Signal<ReadonlyMap<string, number>>, signal: AbortSignal): Promise<void> {
  const found = new Map<string, number>();
  const left = [...names];
  const ask = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const length = await queueLength(currentSession().credential, { account: owner, queue: name }, signal).catch(() => null);
      if (length !== null) found.set(name, length);
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, ask));
  if (!signal.aborted) lengths.value = found;
}
