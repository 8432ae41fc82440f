// Puts a message into a queue.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { Checkbox, Field } from "../../components/controls";
import { Alert } from "../../components/messages";
import { RightButton } from "../../components/rights";
import { toBase64 } from "../../protocol/base64_text";
import { putMessage, type QueueAt } from "../../protocol/queues";
import { currentSession } from "../../state/session";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { lackingPlace } from "../places/rights";

const words = texts.queues;

export function PutForm({ at, onPut }: { readonly at: QueueAt; readonly onPut: () => void }): JSX.Element {
  const id = useId();
  const text = useSignal("");
  const delay = useSignal("0");
  const lives = useSignal("");
  const isBase64 = useSignal(false);
  const error = useSignal<unknown>(null);
  const put = async (): Promise<void> => {
    const livesS = lives.value.trim() === "" ? null : Number(lives.value);
    await putMessage(currentSession().credential, at, {
      text: isBase64.value ? toBase64(text.value) : text.value,
      visibleAfterS: Number(delay.value),
      livesS,
    });
    text.value = "";
    say(words.wasPut);
    onPut();
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    error.value = null;
    put().catch((problem: unknown) => { error.value = problem; });
  };
  return (
    <form class="messages" onSubmit={submit}>
      <div class="field">
        <label for={id}>{words.message}</label>
        <textarea id={id} class="code" rows={4} value={text.value} spellcheck={false} onInput={(event) => { text.value = event.currentTarget.value; }} />
      </div>
      <div class="inline-fields">
        <Field label={words.delay} type="number" value={delay.value} onInput={(value) => { delay.value = value; }} />
        <Field label={words.lives} type="number" value={lives.value} placeholder={words.livesDefault} onInput={(value) => { lives.value = value; }} />
      </div>
      <Checkbox label={words.base64} checked={isBase64.value} onChange={(value) => { isBase64.value = value; }} />
      <Alert error={error.value} />
      <div class="actions"><RightButton right={lackingPlace("put")} type="submit" kind="primary" text={words.put} /></div>
    </form>
  );
}
