// Messages that were peeked at, and those that were gotten, with the time until others see them.

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Field } from "../../components/controls";
import { Alert, Empty } from "../../components/messages";
import { Panel, Time } from "../../components/parts";
import { RightButton } from "../../components/rights";
import { fromBase64 } from "../../protocol/base64_text";
import { deleteMessage, getMessages, type Message, MESSAGES_MAX, peekMessages, type QueueAt } from "../../protocol/queues";
import { currentSession } from "../../state/session";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { lackingPlace } from "../places/rights";
import { type Kept, keptOf } from "./held";
import { UpdateMessage } from "./update_message";

const TICK_MS = 250;
const words = texts.queues;

export function Messages({ at, onChanged }: { readonly at: QueueAt; readonly onChanged: () => void }): JSX.Element {
  const count = useSignal("1");
  const invisible = useSignal("30");
  const peeked = useSignal<readonly Message[] | null>(null);
  const held = useSignal<readonly Kept[]>([]);
  const note = useSignal("");
  const error = useSignal<unknown>(null);
  const run = (act: () => Promise<void>): void => {
    error.value = null;
    act().then(onChanged).catch((problem: unknown) => { error.value = problem; });
  };
  const peek = async (): Promise<void> => {
    peeked.value = await peekMessages(currentSession().credential, at, MESSAGES_MAX);
    note.value = words.peekedCount(peeked.value.length);
  };
  const get = async (): Promise<void> => {
    const got = await getMessages(currentSession().credential, at, Number(count.value), Number(invisible.value));
    const ids = new Set(got.map((one) => one.id));
    held.value = [...got.map(keptOf), ...held.value.filter((one) => !ids.has(one.id))];
    peeked.value = peeked.value?.filter((one) => !ids.has(one.id)) ?? null;
    note.value = got.length ? words.gotCount(got.length) : words.gotNone;
  };
  return (
    <div>
      <Panel title={words.readTitle}>
        <div class="inline-fields">
          <Field label={words.count} type="number" value={count.value} onInput={(value) => { count.value = value; }} />
          <Field label={words.invisible} type="number" value={invisible.value} onInput={(value) => { invisible.value = value; }} />
          <div class="actions">
            <RightButton right={lackingPlace("peek")} text={words.peek} onClick={() => { run(peek); }} />
            <RightButton right={lackingPlace("get")} kind="primary" text={words.get} onClick={() => { run(get); }} />
          </div>
        </div>
        <p class="hint">{words.readHint}</p>
        <p class="muted" role="status">{note.value}</p>
        <Alert error={error.value} />
      </Panel>
      {held.value.length > 0 && <HeldPanel at={at} held={held} onChanged={onChanged} />}
      {peeked.value && (
        <Panel title={words.peekedTitle}>
          {peeked.value.length === 0 && <Empty title={words.peekedNone}>{words.peekedNoneHint}</Empty>}
          <ul class="messages">{peeked.value.map((one) => <OneMessage key={one.id} message={one} />)}</ul>
        </Panel>
      )}
    </div>
  );
}

function HeldPanel({ at, held, onChanged }: { readonly at: QueueAt; readonly held: Signal<readonly Kept[]>; readonly onChanged: () => void }): JSX.Element {
  const now = useNow();
  const updated = useSignal<Kept | null>(null);
  const error = useSignal<unknown>(null);
  const remove = (message: Kept): void => {
    error.value = null;
    deleteMessage(currentSession().credential, at, message)
      .then(() => {
        held.value = held.value.filter((one) => one.id !== message.id);
        say(words.messageDeleted);
        onChanged();
      })
      .catch((problem: unknown) => { error.value = problem; });
  };
  return (
    <Panel title={words.heldTitle}>
      <Alert error={error.value} />
      <ul class="messages">
        {held.value.map((one) => (
          <OneMessage key={one.id} message={one} left={<Countdown ms={one.endsAt - now} />}>
            <RightButton right={lackingPlace("updateMessage")} kind="quiet" text={words.update} onClick={() => { updated.value = one; }} />
            <RightButton right={lackingPlace("deleteMessage")} kind="quiet" text={words.delete} onClick={() => { remove(one); }} />
          </OneMessage>
        ))}
      </ul>
      {updated.value && (
        <UpdateMessage
          at={at}
          message={updated.value}
          onClose={() => { updated.value = null; }}
          onUpdated={(next) => {
            held.value = held.value.map((one) => (one.id === next.id ? next : one)).filter((one) => one.invisibleMs > 0);
            onChanged();
          }}
        />
      )}
    </Panel>
  );
}

function Countdown({ ms }: { readonly ms: number }): JSX.Element {
  const seconds = Math.ceil(ms / 1000);
  if (seconds <= 0) return <span class="countdown over">{words.visibleAgain}</span>;
  return <span class="countdown" role="timer">{words.invisibleFor(seconds)}</span>;
}

interface OneMessageProps {
  readonly message: Message;
  readonly left?: ComponentChildren;
  readonly children?: ComponentChildren;
}

function OneMessage({ message, left, children }: OneMessageProps): JSX.Element {
  const inside = fromBase64(message.text);
  return (
    <li class="message">
      <pre tabIndex={0} aria-label={words.textOf}>{message.text}</pre>
      {inside !== null && (
        <>
          <p class="hint">{words.decoded}</p>
          <pre tabIndex={0} aria-label={words.decoded}>{inside}</pre>
        </>
      )}
      <footer>
        <span class="meta">
          {left}
          {left && " · "}
          {words.dequeued(message.dequeueCount)} · {words.inserted} {message.insertedTime && <Time at={message.insertedTime} />}
        </span>
        {children && <span class="actions">{children}</span>}
      </footer>
    </li>
  );
}

function useNow(): number {
  const now = useSignal(performance.now());
  useEffect(() => {
    const timer = setInterval(() => { now.value = performance.now(); }, TICK_MS);
    return () => { clearInterval(timer); };
  }, []);
  return now.value;
}
