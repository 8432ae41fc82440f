// The list of queues, a page at a time, with lengths that are asked for again while it is shown.

import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button, Field } from "../../components/controls";
import { ConfirmByName, FormDialog } from "../../components/dialog";
import { Empty, Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { createQueue, deleteQueue, listQueues, type QueuePage, queueLength } from "../../protocol/queues";
import { repeat } from "../../state/live";
import { addressOf, navigate } from "../../state/router";
import { currentSession } from "../../state/session";
import { countText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";

const PAGE_QUEUES = 50;
const LENGTHS_EVERY_MS = 5_000;
const ASKED_AT_ONCE = 4;
const FILTER_PAUSE_MS = 250;
const words = texts.queues;

export function QueueList({ owner }: { readonly owner: string }): JSX.Element {
  const prefix = useSignal("");
  const marker = useSignal("");
  const page = useSignal<QueuePage | null>(null);
  const error = useSignal<unknown>(null);
  const again = useSignal(0);
  const isMaking = useSignal(false);
  const doomed = useSignal<string | null>(null);
  useEffect(() => {
    const end = new AbortController();
    const query = { prefix: prefix.value, marker: marker.value, maxresults: PAGE_QUEUES };
    const ask = (): void => {
      listQueues(currentSession().credential, owner, query, end.signal)
        .then((found) => { page.value = found; error.value = null; })
        .catch((problem: unknown) => { if (!end.signal.aborted) error.value = problem; });
    };
    const timer = setTimeout(ask, prefix.value ? FILTER_PAUSE_MS : 0);
    return () => { clearTimeout(timer); end.abort(); };
  }, [owner, prefix.value, marker.value, again.value]);
  const lengths = useLengths(owner, page);
  const names = page.value?.names ?? [];
  return (
    <div class="queues">
      <ViewHead title={words.title} lead={words.lead}>
        <Button kind="primary" onClick={() => { isMaking.value = true; }}>{words.newQueue}</Button>
      </ViewHead>
      <div class="toolbar">
        <Field label={words.prefix} type="search" value={prefix.value} onInput={(value) => { prefix.value = value; marker.value = ""; }} code />
      </div>
      <Problem error={error.value} />
      {names.length > 0 && (
        <div class="table-box listing">
          <table aria-label={words.title}>
            <thead>
              <tr>
                <th scope="col">{words.columns.name}</th>
                <th scope="col" class="number">{words.columns.length}</th>
                <th scope="col"><span class="minor">{texts.data.acts}</span></th>
              </tr>
            </thead>
            <tbody>
              {names.map((name) => (
                <tr key={name}>
                  <td class="name-cell"><a href={addressOf("queues", [owner, name])}>{name}</a></td>
                  <td class="number">{lengths.value.has(name) ? countText(lengths.value.get(name) ?? 0) : texts.data.unknown}</td>
                  <td><Button kind="quiet" name={words.deleteOf(name)} onClick={() => { doomed.value = name; }}>{words.delete}</Button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page.value && names.length === 0 && (
        <Empty title={prefix.value ? words.noneWithPrefix : words.emptyTitle}>{prefix.value ? words.noneWithPrefixHint : words.empty}</Empty>
      )}
      <Pages marker={marker} next={page.value?.next ?? ""} />
      {isMaking.value && <NewQueue owner={owner} onClose={() => { isMaking.value = false; }} onMade={() => { again.value += 1; }} />}
      {doomed.value !== null && (
        <DeleteQueue at={{ account: owner, queue: doomed.value }} onClose={() => { doomed.value = null; }} onDeleted={() => { again.value += 1; }} />
      )}
    </div>
  );
}

function Pages({ marker, next }: { readonly marker: Signal<string>; readonly next: string }): JSX.Element | null {
  if (!marker.value && !next) return null;
  return (
    <div class="actions">
      <Button disabled={!marker.value} onClick={() => { marker.value = ""; }}>{texts.data.firstPage}</Button>
      <Button disabled={!next} onClick={() => { marker.value = next; }}>{texts.data.nextPage}</Button>
    </div>
  );
}

function NewQueue({ owner, onClose, onMade }: { readonly owner: string; readonly onClose: () => void; readonly onMade: () => void }): JSX.Element {
  const name = useSignal("");
  const act = async (): Promise<void> => {
    const isNew = await createQueue(currentSession().credential, { account: owner, queue: name.value.trim() });
    say(isNew ? words.made(name.value.trim()) : words.wasThere(name.value.trim()));
    onMade();
  };
  return (
    <FormDialog title={words.newQueue} onClose={onClose} action={texts.data.create} act={act}>
      <Field label={words.name} value={name.value} onInput={(value) => { name.value = value; }} hint={words.nameHint} required code />
    </FormDialog>
  );
}

export interface DeleteQueueProps {
  readonly at: { readonly account: string; readonly queue: string };
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteQueue({ at, onClose, onDeleted }: DeleteQueueProps): JSX.Element {
  const act = async (): Promise<void> => {
    await deleteQueue(currentSession().credential, at);
    say(words.deleted(at.queue));
    onDeleted();
  };
  return <ConfirmByName title={words.deleteTitle} risk={words.deleteRisk} name={at.queue} onClose={onClose} act={act} />;
}

/** Go to the list of queues, after the one that was shown is gone. */
export function showList(owner: string): void {
  navigate(addressOf("queues", [owner]), true);
}

function useLengths(owner: string, page: Signal<QueuePage | null>): Signal<ReadonlyMap<string, number>> {
  const lengths = useSignal<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    const names = page.value?.names ?? [];
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
