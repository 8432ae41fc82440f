// Dialogs: the browser's own, which keep the focus inside, close by Escape, and give the focus back.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

import { texts } from "../texts";
import { Button, Field } from "./controls";
import { Alert } from "./messages";

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Shown over more of the window, for what is compared side by side. */
  readonly wide?: boolean;
}

/** Show a dialog for as long as it is in the tree. The field that asks for the focus has it, else the first. */
export function Dialog({ title, onClose, children, wide }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the browser sees the next key: an effect that waits for a frame would lose what is typed until then.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[autofocus]")?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={wide ? "wide" : undefined} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose(); }}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

export interface FormDialogProps extends DialogProps {
  readonly action: string;
  readonly kind?: "primary" | "danger";
  readonly disabled?: boolean;
  /** Does it; what it raises is announced in the dialog, which then stays open. */
  readonly act: () => Promise<void>;
}

/** A dialog with one act: fields, `Cancel`, and a button named `action`. */
export function FormDialog({ title, onClose, children, wide, action, kind = "primary", disabled, act }: FormDialogProps): JSX.Element {
  const error = useSignal<unknown>(null);
  const isBusy = useSignal(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    isBusy.value = true;
    error.value = null;
    try {
      await act();
      onClose();
    } catch (problem) {
      error.value = problem;
      isBusy.value = false;
    }
  };
  return (
    <Dialog title={title} onClose={onClose} {...(wide ? { wide } : {})}>
      <form onSubmit={(event) => void submit(event)}>
        {children}
        <Alert error={error.value} />
        <div class="actions">
          <Button onClick={onClose}>{texts.dialogs.cancel}</Button>
          <Button type="submit" kind={kind} disabled={disabled === true || isBusy.value}>{action}</Button>
        </div>
      </form>
    </Dialog>
  );
}

export interface ConfirmByNameProps {
  /** What is asked, as a sentence: "Delete the container a?" */
  readonly title: string;
  /** What is lost. */
  readonly risk: string;
  /** The name to type. */
  readonly name: string;
  readonly onClose: () => void;
  readonly act: () => Promise<void>;
}

/** Ask for the name of what will be destroyed. */
export function ConfirmByName({ title, risk, name, onClose, act }: ConfirmByNameProps): JSX.Element {
  const typed = useSignal("");
  return (
    <FormDialog title={title} onClose={onClose} action={texts.dialogs.confirm} kind="danger" disabled={typed.value !== name} act={act}>
      <p>{risk}</p>
      <p class="asked-name"><code>{name}</code></p>
      <Field label={texts.dialogs.typeTheName} value={typed.value} onInput={(value) => { typed.value = value; }} code autofocus />
    </FormDialog>
  );
}
