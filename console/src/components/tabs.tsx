// Tabs: one panel is shown of several. Arrows move among the tabs.

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

export interface TabsProps<Name extends string> {
  readonly label: string;
  readonly tabs: readonly (readonly [name: Name, text: string])[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
  readonly children: ComponentChildren;
}

export function Tabs<Name extends string>({ label, tabs, chosen, onChoose, children }: TabsProps<Name>): JSX.Element {
  const id = useId();
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([name]) => name === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next[0]);
    document.getElementById(`${id}-${next[0]}`)?.focus();
  };
  return (
    <div class="tabbed">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(([name, text]) => (
          <button
            key={name}
            id={`${id}-${name}`}
            type="button"
            role="tab"
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => { onChoose(name); }}
          >
            {text}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} class="tab-panel" role="tabpanel" aria-labelledby={`${id}-${chosen}`}>{children}</div>
    </div>
  );
}
