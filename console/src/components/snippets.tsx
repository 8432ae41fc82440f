// The same thing in several languages: tabs, a text, and a button that copies it.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { texts } from "../texts";
import { CopyButton } from "./parts";

export interface SnippetsProps {
  readonly snippets: readonly (readonly [language: string, code: string])[];
}

export function Snippets({ snippets }: SnippetsProps): JSX.Element | null {
  const id = useId();
  const chosen = useSignal(0);
  const tab = (at: number): HTMLElement | null => document.getElementById(`${id}-${at}`);
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    chosen.value = (chosen.value + step + snippets.length) % snippets.length;
    tab(chosen.value)?.focus();
  };
  const shown = snippets[chosen.value];
  if (!shown) return null;
  return (
    <div class="snippets">
      <div class="tabs">
        <div role="tablist" onKeyDown={move}>
          {snippets.map(([language], at) => (
            <button
              key={language}
              id={`${id}-${at}`}
              type="button"
              role="tab"
              aria-selected={at === chosen.value}
              aria-controls={`${id}-panel`}
              tabIndex={at === chosen.value ? 0 : -1}
              onClick={() => { chosen.value = at; }}
            >
              {language}
            </button>
          ))}
        </div>
        <CopyButton name={texts.dialogs.copyCode(shown[0])} text={() => shown[1]} />
      </div>
      <pre id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${chosen.value}`} tabIndex={0}>{shown[1]}</pre>
    </div>
  );
}
