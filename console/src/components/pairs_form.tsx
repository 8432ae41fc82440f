// Pairs of names and values, as rows that can be changed: metadata, tags. What was typed stays while
// others write, and is saved only over what the person has seen.

import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { isSamePairs, type Pairs } from "../protocol/shared/headers";
import { complain } from "../state/toasts";
import { texts } from "../texts";
import { Button } from "./controls";
import { Notice } from "./messages";
import { RightButton } from "./rights";

const words = texts.blobs;

export interface PairsFormProps {
  readonly label: string;
  /** As they are now. */
  readonly pairs: Pairs;
  /** Of the state that has them; "" where no write looks at it. */
  readonly etag?: string;
  /** The text of the right that the sign-in lacks to save; "" for none. */
  readonly right: string;
  /** A snapshot or version keeps what it has. */
  readonly isFixed: boolean;
  /** Write `pairs`, unless others have changed what was `seen`. */
  readonly save: (pairs: Pairs, seen: SeenPairs) => Promise<void>;
}

/** What the rows began with, or what the person chose to replace. */
export interface SeenPairs {
  readonly pairs: Pairs;
  readonly etag: string;
}

/** For a service that knows no condition: raise an Error if what there is now is not what was seen. */
export function mustBeAsSeen(seen: SeenPairs, now: Pairs): void {
  if (!isSamePairs(seen.pairs, now)) throw new Error(words.pairsChangedBefore);
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

function rowsOf(pairs: Pairs): readonly Row[] {
  return pairs.map(([name, value]) => rowOf(name, value));
}

/** Without the rows into which nothing was typed. */
function pairsOf(rows: readonly Row[]): Pairs {
  return rows.filter(({ name, value }) => name !== "" || value !== "").map(({ name, value }) => [name, value] as const);
}

export function PairsForm({ label, pairs, etag = "", right, isFixed, save }: PairsFormProps): JSX.Element {
  const rows = useSignal(rowsOf(pairs));
  const seen = useSignal<SeenPairs>({ pairs, etag });
  const isTouched = !isSamePairs(pairsOf(rows.value), seen.value.pairs);
  const isChanged = !isSamePairs(seen.value.pairs, pairs);
  const keep = (): void => { seen.value = { pairs, etag }; };
  const take = (): void => {
    rows.value = rowsOf(pairs);
    keep();
  };
  useEffect(() => {
    if (!isChanged) keep();
    else if (!isTouched) take();
  }, [JSON.stringify(pairs), etag]);
  const isOpen = isChanged && isTouched;
  const submit = (): void => {
    if (isOpen) return;
    const named = pairsOf(rows.value).filter(([name]) => name !== "");
    save(named, seen.value).then(() => { seen.value = { ...seen.value, pairs: named }; }, complain);
  };
  return (
    <form class="pairs" aria-label={label} onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <Notice text={isOpen ? words.pairsChanged : ""}>
        <Theirs pairs={pairs} />
        <p>{words.pairsChoice}</p>
        <div class="actions">
          <Button onClick={take}>{texts.tables.takeTheirs}</Button>
          <Button onClick={keep}>{texts.tables.keepMine}</Button>
        </div>
      </Notice>
      {rows.value.length === 0 && <p class="muted">{words.none}</p>}
      {rows.value.map((row) => <PairRow key={row.key} row={row} rows={rows} isFixed={isFixed} />)}
      {!isFixed && (
        <div class="actions">
          <Button onClick={() => { rows.value = [...rows.value, rowOf()]; }}>{words.addRow}</Button>
          <RightButton right={right} type="submit" kind="primary" text={words.save} disabled={isOpen} />
        </div>
      )}
    </form>
  );
}

function Theirs({ pairs }: { readonly pairs: Pairs }): JSX.Element {
  if (pairs.length === 0) return <p class="muted">{words.none}</p>;
  return <ul class="theirs">{pairs.map(([name, value]) => <li key={name}><code>{`${name}: ${value}`}</code></li>)}</ul>;
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
