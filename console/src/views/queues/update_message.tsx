// Changes the text of a message that this page holds, or for how long others do not see it.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { Field } from "../../components/controls";
import { FormDialog } from "../../components/dialog";
import { type QueueAt, updateMessage } from "../../protocol/queues";
import { currentSession } from "../../state/session";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { type Kept, keptOf } from "./held";

const words = texts.queues;

export interface UpdateMessageProps {
  readonly at: QueueAt;
  readonly message: Kept;
  readonly onClose: () => void;
  readonly onUpdated: (next: Kept) => void;
}

export function UpdateMessage({ at, message, onClose, onUpdated }: UpdateMessageProps): JSX.Element {
  const id = useId();
  const text = useSignal(message.text);
  const invisible = useSignal("30");
  const act = async (): Promise<void> => {
    const change = { text: text.value === message.text ? null : text.value, invisibleS: Number(invisible.value) };
    const held = await updateMessage(currentSession().credential, at, message, change);
    onUpdated(keptOf({ ...message, ...held, text: text.value }));
    say(words.updated);
  };
  return (
    <FormDialog title={words.updateTitle} onClose={onClose} action={words.update} act={act}>
      <div class="field">
        <label for={id}>{words.newText}</label>
        <textarea id={id} class="code" rows={6} value={text.value} spellcheck={false} onInput={(event) => { text.value = event.currentTarget.value; }} />
      </div>
      <Field label={words.invisible} type="number" value={invisible.value} hint={words.invisibleHint} onInput={(value) => { invisible.value = value; }} />
    </FormDialog>
  );
}
