// The editor inside a cell: a value and its type. Enter saves, Escape leaves all as it was.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { EDM_TYPES, type EdmType, isSame, type TypedValue, typeNamed } from "../../protocol/entities";
import { texts } from "../../texts";

const NONE = "none";
const words = texts.tables;

export interface CellEditorProps {
  readonly name: string;
  /** null: the entity has no such property. */
  readonly value: TypedValue | null;
  /** What an edit begins with that was not saved before; null: the property is to be removed. */
  readonly draft?: TypedValue | null | undefined;
  /** The type of a value that was none. */
  readonly usualType: EdmType;
  readonly onSave: (value: TypedValue | null) => void;
  readonly onCancel: () => void;
}

export function CellEditor({ name, value, draft, usualType, onSave, onCancel }: CellEditorProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const isOver = useRef(false);
  const type = useSignal<string>(draft === null ? NONE : (draft?.type ?? value?.type ?? usualType));
  const start = value?.text ?? "";
  useLayoutEffect(() => {
    area.current?.focus();
    area.current?.select();
  }, []);
  const end = (isKept: boolean): void => {
    if (isOver.current) return;
    isOver.current = true;
    const next = type.value === NONE ? null : { type: typeNamed(type.value), text: typedText(area.current?.value ?? "", start) };
    // A property that was not there, and into which nothing was typed, stays away.
    const isUntouched = value === null ? next === null || next.text === "" : isSame(value, next);
    if (isKept && !isUntouched) onSave(next);
    else onCancel();
  };
  const keys = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") end(false);
    else if (event.key === "Enter" && !event.shiftKey) end(true);
    else return;
    event.preventDefault();
  };
  const left = (event: FocusEvent): void => {
    const isInside = event.relatedTarget instanceof Node && box.current?.contains(event.relatedTarget);
    if (!isInside && document.hasFocus()) end(true);
  };
  return (
    <div class="cell-editor" ref={box} onKeyDown={keys} onFocusOut={left}>
      <textarea ref={area} class="code" rows={start.includes("\n") ? 4 : 1} aria-label={words.valueOf(name)} spellcheck={false} defaultValue={draft?.text ?? start} />
      <select aria-label={words.typeOf(name)} value={type.value} onChange={(event) => { type.value = event.currentTarget.value; }}>
        {EDM_TYPES.map((one) => <option key={one} value={one}>{one}</option>)}
        <option value={NONE}>{words.removeProperty}</option>
      </select>
    </div>
  );
}

/** A text field makes each end of a line "\n"; a text that had "\r\n" gets it back. */
export function typedText(typed: string, before: string): string {
  const bare = before.replaceAll("\r\n", "");
  const hadPairs = before.includes("\r\n") && !/[\r\n]/.test(bare);
  if (typed === before.replace(/\r\n?/g, "\n")) return before;
  return hadPairs ? typed.replaceAll("\n", "\r\n") : typed;
}
