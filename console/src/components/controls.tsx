// Buttons and fields. A field's label is its name; what explains it is its description.

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

export interface ButtonProps {
  /** The verb, or the verb and the thing: it is the button's name. */
  readonly children: ComponentChildren;
  readonly onClick?: () => void;
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  readonly type?: "button" | "submit";
  readonly disabled?: boolean;
  /** A longer name, where the words alone do not say which thing is meant. It begins with them. */
  readonly name?: string;
  readonly pressed?: boolean;
}

export function Button({ children, onClick, kind = "plain", type = "button", disabled, name, pressed }: ButtonProps): JSX.Element {
  return (
    <button type={type} class={`button ${kind}`} disabled={disabled} aria-label={name} aria-pressed={pressed} onClick={onClick}>
      {children}
    </button>
  );
}

export interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string;
  readonly type?: "text" | "password" | "search" | "number" | "url";
  readonly required?: boolean;
  readonly placeholder?: string;
  readonly disabled?: boolean;
  /** Names, keys and paths are shown in a fixed width, and no program corrects them. */
  readonly code?: boolean;
  /** Has the focus when its dialog opens. */
  readonly autofocus?: boolean;
}

export function Field({ label, value, onInput, hint, type = "text", required, placeholder, disabled, code, autofocus }: FieldProps): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        class={code ? "code" : undefined}
        type={type as "text"}
        value={value}
        required={required}
        disabled={disabled}
        placeholder={placeholder}
        autofocus={autofocus}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onInput={(event) => { onInput(event.currentTarget.value); }}
      />
      {hint && <p id={`${id}-hint`} class="hint">{hint}</p>}
    </div>
  );
}

export interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

export function Select({ label, value, options, onChange }: SelectProps): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => { onChange(event.currentTarget.value); }}>
        {options.map(([one, text]) => <option key={one} value={one}>{text}</option>)}
      </select>
    </div>
  );
}

export interface CheckboxProps {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}

export function Checkbox({ label, checked, onChange }: CheckboxProps): JSX.Element {
  return (
    <label class="checkbox">
      <input type="checkbox" checked={checked} onChange={(event) => { onChange(event.currentTarget.checked); }} />
      {label}
    </label>
  );
}
