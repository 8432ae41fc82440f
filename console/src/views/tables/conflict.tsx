// Both versions of an entity side by side, and the choice between them.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { Alert } from "../../components/messages";
import type { Entity, TypedValue } from "../../protocol/entities";
import type { TableAt } from "../../protocol/tables";
import { texts } from "../../texts";
import { type Conflict, type Difference, differences, isConflict, keepMine } from "./saving";

const words = texts.tables;

export interface ConflictDialogProps {
  readonly at: TableAt;
  readonly conflict: Conflict;
  /** The person goes back to the edit. */
  readonly onCancel: () => void;
  /** The entity as it is after the choice; null: it is gone. */
  readonly onChosen: (entity: Entity | null) => void;
  /** Others wrote once more, while the person chose. */
  readonly onAgain: (conflict: Conflict) => void;
}

export function ConflictDialog({ at, conflict, onCancel, onChosen, onAgain }: ConflictDialogProps): JSX.Element {
  const error = useSignal<unknown>(null);
  const isBusy = useSignal(false);
  const take = (): void => { onChosen(conflict.theirs); };
  const keep = async (): Promise<void> => {
    isBusy.value = true;
    error.value = null;
    try {
      const result = await keepMine(at, conflict);
      if (isConflict(result)) {
        error.value = words.conflictAgain;
        onAgain(result);
      } else {
        onChosen(result);
      }
    } catch (problem) {
      error.value = problem;
    }
    isBusy.value = false;
  };
  const { partitionKey, rowKey } = conflict.seen;
  return (
    <Dialog title={words.conflict} onClose={onCancel} wide>
      <p>{conflict.theirs ? words.conflictText : words.conflictGone}</p>
      <p class="keys"><code>{partitionKey}</code> / <code>{rowKey}</code></p>
      <div class="scroll">
        <table aria-label={words.conflictTable} class="versions">
          <thead>
            <tr>
              <th scope="col">{words.property}</th>
              <th scope="col">{words.mine}</th>
              <th scope="col">{words.theirs}</th>
            </tr>
          </thead>
          <tbody>
            {differences(conflict).map((one) => <Row key={one.name} of={one} isGone={conflict.theirs === null} />)}
          </tbody>
        </table>
      </div>
      <p class="hint">{conflict.theirs ? words.keepHint : words.keepGoneHint}</p>
      <Alert error={error.value} />
      <div class="actions">
        <Button onClick={onCancel}>{texts.dialogs.cancel}</Button>
        <Button onClick={take}>{words.takeTheirs}</Button>
        <Button kind="primary" disabled={isBusy.value} onClick={() => void keep()}>{words.keepMine}</Button>
      </div>
    </Dialog>
  );
}

function Row({ of, isGone }: { readonly of: Difference; readonly isGone: boolean }): JSX.Element {
  return (
    <tr class={of.byMe || of.byThem ? "differs" : undefined}>
      <th scope="row">{of.name}</th>
      <td><Value of={of.mine} />{of.byMe && <span class="tag">{words.changedByYou}</span>}</td>
      <td>{isGone ? <span class="muted">{words.gone}</span> : <Value of={of.theirs} />}{of.byThem && <span class="tag">{words.changedByThem}</span>}</td>
    </tr>
  );
}

function Value({ of }: { readonly of: TypedValue | null }): JSX.Element {
  if (!of) return <span class="muted">{words.noValue}</span>;
  return <span title={of.type}>{of.text}</span>;
}
