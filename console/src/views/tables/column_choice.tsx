// Which properties have a column. The choice is in the address, so a bookmark keeps it.

import type { JSX } from "preact";

import { Button, Checkbox } from "../../components/controls";
import { texts } from "../../texts";
import type { PropertyColumn } from "./columns";

const words = texts.tables;

export interface ColumnChoiceProps {
  readonly columns: readonly PropertyColumn[];
  /** null: all, also those of entities that come later. */
  readonly chosen: readonly string[] | null;
  readonly onChoose: (names: readonly string[] | null) => void;
}

export function ColumnChoice({ columns, chosen, onChoose }: ColumnChoiceProps): JSX.Element {
  const names = columns.map((one) => one.name);
  const isShown = (name: string): boolean => chosen === null || chosen.includes(name);
  const toggle = (name: string): void => {
    const shown = names.filter((one) => (one === name ? !isShown(one) : isShown(one)));
    onChoose(shown.length === names.length ? null : shown);
  };
  const count = names.filter(isShown).length;
  return (
    <details>
      <summary>{words.columnsTitle(count, names.length)}</summary>
      <div role="group" class="column-choice" aria-label={words.columnsHint}>
        {names.map((name) => <Checkbox key={name} label={name} checked={isShown(name)} onChange={() => { toggle(name); }} />)}
        <Button kind="quiet" disabled={chosen === null} onClick={() => { onChoose(null); }}>{words.showAll}</Button>
      </div>
    </details>
  );
}
