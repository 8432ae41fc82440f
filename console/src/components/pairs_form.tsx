// Pairs of names and values, as rows that can be changed: metadata, tags.

import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { Pairs } from "../protocol/shared/headers";
import { complain } from "../state/toasts";
import { texts } from "../texts";
import { Button } from "./controls";
import { RightButton } from "./rights";

const words = texts.blobs;

export interface PairsFormProps {
  readonly label: string;
  readonly pairs: Pairs;
  /** The text of the right that the sign-in lacks to save; "" for none. */
  readonly right: string;
  /** A snapshot or version keeps what it has. */
  readonly isFixed: boolean;
  readonly save: (pairs: Pairs) => Promise<void>;
}

interface Row {
  readonly key: number;
  readonly name: string;
  readonly value: string;
}

let last = 0;

function rowOf(name = "", value = ""): Row {
  last += 1;
  return { key: last, name, value };
}

export function PairsForm({ label, pairs, right, isFixed, save }: PairsFormProps): JSX.Element {
  const rows = useSignal<readonly Row[]>([]);
  useEffect(() => { rows.value = pairs.map(([name, value]) => rowOf(name, value)); }, [JSON.stringify(pairs)]);
  const submit = (): void => {
    save(rows.value.filter((row) => row.name !== "").map((row) => [row.name, row.value] as const)).catch(complain);
  };
  return (
    <form class="pairs" aria-label={label} onSubmit={(event) => { event.preventDefault(); submit(); }}>
      {rows.value.length === 0 && <p class="muted">{words.none}</p>}
      {rows.value.map((row) => <PairRow key={row.key} row={row} rows={rows} isFixed={isFixed} />)}
      {!isFixed && (
        <div class="actions">
          <Button onClick={() => { rows.value = [...rows.value, rowOf()]; }}>{words.addRow}</Button>
          <RightButton right={right} kind="primary" text={words.save} onClick={submit} />
        </div>
      )}
    </form>
  );
}

function PairRow({ row, rows, isFixed }: { readonly row: Row; readonly rows: Signal<readonly Row[]>; readonly isFixed: boolean }): JSX.Element {
  const change = (values: Partial<Row>): void => {
    rows.value = rows.value.map((one) => (one.key === row.key ? { ...one, ...values } : one));
  };
  return (
    <div class="pair">
      <input class="code" aria-label={words.name} value={row.name} readOnly={isFixed} spellcheck={false} onInput={(event) => { change({ name: event.currentTarget.value }); }} />
      <input class="code" aria-label={words.value} value={row.value} readOnly={isFixed} spellcheck={false} onInput={(event) => { change({ value: event.currentTarget.value }); }} />
      {!isFixed && <Button kind="quiet" name={words.removeNamed(row.name)} onClick={() => { rows.value = rows.value.filter((one) => one.key !== row.key); }}>{words.removeRow}</Button>}
    </div>
  );
}
