// The list of an account's queues, tables or shares: a page at a time, by prefix, with a dialog that
// makes one and a dialog that deletes one. What is particular to a service is given to it.

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button, Field } from "../../components/controls";
import { ConfirmByName, FormDialog } from "../../components/dialog";
import { Empty, Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { RightButton } from "../../components/rights";
import { ServiceError } from "../../protocol/errors";
import { say } from "../../state/toasts";
import { texts } from "../../texts";

const PREFIX_PAUSE_MS = 250;

/** The texts of a kind of places: sections of texts.ts have them under these names. */
export interface PlaceWords {
  readonly title: string;
  readonly lead: string;
  readonly newPlace: string;
  readonly name: string;
  readonly nameHint: string;
  readonly nameColumn: string;
  readonly prefix: string;
  readonly delete: string;
  readonly deleteOf: (name: string) => string;
  readonly deleteTitle: string;
  readonly deleteRisk: string;
  readonly deleted: (name: string) => string;
  readonly emptyTitle: string;
  readonly empty: string;
  readonly noneWithPrefix: string;
  readonly noneWithPrefixHint: string;
}

export interface PlacePage<Place> {
  readonly rows: readonly Place[];
  /** For the next page; "" after the last. */
  readonly next: string;
}

export interface PlaceColumn<Place> {
  readonly key: string;
  readonly header: string;
  readonly class?: string;
  readonly cell: (place: Place) => ComponentChildren;
}

export interface PlaceListProps<Place> {
  readonly words: PlaceWords;
  /** Holds the page that is shown, for a caller that asks more about its rows. */
  readonly page: Signal<PlacePage<Place> | null>;
  readonly list: (query: { readonly prefix: string; readonly marker: string }, signal: AbortSignal) => Promise<PlacePage<Place>>;
  /** What the list depends on beside its prefix: when it changes, the first page is read anew. */
  readonly shownBy?: string;
  readonly nameOf: (place: Place) => string;
  /** What tells two places apart, where their names do not. */
  readonly keyOf?: (place: Place) => string;
  /** "" for a place that cannot be opened. */
  readonly hrefOf: (place: Place) => string;
  readonly columns?: readonly PlaceColumn<Place>[];
  /** What a row has in place of `Delete`; null: `Delete`. */
  readonly actOf?: (place: Place, changed: () => void) => JSX.Element | null;
  /** Beside the prefix. */
  readonly filters?: ComponentChildren;
  /** The fields of the dialog after the name. */
  readonly fields?: ComponentChildren;
  /** Make a place; return what is said then. */
  readonly make: (name: string) => Promise<string>;
  readonly remove: (name: string) => Promise<void>;
  /** The texts of the rights that the sign-in lacks for both; "" for none. */
  readonly lacks: { readonly make: string; readonly remove: string };
  /** What to do instead, where the service refuses to list. */
  readonly unlisted?: string;
}

export function PlaceList<Place>(props: PlaceListProps<Place>): JSX.Element {
  const { words, page, list, shownBy = "" } = props;
  const prefix = useSignal("");
  const marker = useSignal("");
  const error = useSignal<unknown>(null);
  const again = useSignal(0);
  const isMaking = useSignal(false);
  const doomed = useSignal<string | null>(null);
  const before = useSignal(shownBy);
  useEffect(() => {
    const end = new AbortController();
    if (before.value !== shownBy) { before.value = shownBy; marker.value = ""; }
    const ask = (): void => {
      list({ prefix: prefix.value, marker: marker.value }, end.signal)
        .then((found) => { page.value = found; error.value = null; })
        .catch((problem: unknown) => { if (!end.signal.aborted) error.value = problem; });
    };
    const timer = setTimeout(ask, prefix.value ? PREFIX_PAUSE_MS : 0);
    return () => { clearTimeout(timer); end.abort(); };
  }, [shownBy, prefix.value, marker.value, again.value]);
  const rows = page.value?.rows ?? [];
  const changed = (): void => { again.value += 1; };
  return (
    <div class="places">
      <ViewHead title={words.title} lead={words.lead}>
        <RightButton right={props.lacks.make} kind="primary" text={words.newPlace} onClick={() => { isMaking.value = true; }} />
      </ViewHead>
      <div class="toolbar">
        <Field label={words.prefix} type="search" value={prefix.value} onInput={(value) => { prefix.value = value; marker.value = ""; }} code />
        {props.filters && <div class="toolbar-end">{props.filters}</div>}
      </div>
      <Problem error={error.value} />
      {props.unlisted && error.value instanceof ServiceError && error.value.status === 403 && <p class="hint">{props.unlisted}</p>}
      {rows.length > 0 && <Rows props={props} rows={rows} changed={changed} doom={(name) => { doomed.value = name; }} />}
      {page.value && rows.length === 0 && (
        <Empty title={prefix.value ? words.noneWithPrefix : words.emptyTitle}>{prefix.value ? words.noneWithPrefixHint : words.empty}</Empty>
      )}
      <Pages marker={marker} next={page.value?.next ?? ""} />
      {isMaking.value && <NewPlace props={props} onClose={() => { isMaking.value = false; }} onMade={changed} />}
      {doomed.value !== null && (
        <DeletePlace words={words} name={doomed.value} remove={props.remove} onClose={() => { doomed.value = null; }} onDeleted={changed} />
      )}
    </div>
  );
}

interface RowsProps<Place> {
  readonly props: PlaceListProps<Place>;
  readonly rows: readonly Place[];
  readonly changed: () => void;
  readonly doom: (name: string) => void;
}

function Rows<Place>({ props, rows, changed, doom }: RowsProps<Place>): JSX.Element {
  const { words, columns = [], nameOf, hrefOf, actOf } = props;
  return (
    <div class="table-box listing">
      <table aria-label={words.title}>
        <thead>
          <tr>
            <th scope="col">{words.nameColumn}</th>
            {columns.map((one) => <th key={one.key} scope="col" class={one.class}>{one.header}</th>)}
            <th scope="col"><span class="minor">{texts.data.acts}</span></th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const name = nameOf(row);
            const href = hrefOf(row);
            return (
              <tr key={props.keyOf?.(row) ?? name}>
                <td class="name-cell">{href ? <a href={href}>{name}</a> : name}</td>
                {columns.map((one) => <td key={one.key} class={one.class}>{one.cell(row)}</td>)}
                <td>
                  {actOf?.(row, changed) ?? (
                    <RightButton right={props.lacks.remove} kind="quiet" text={words.delete} name={words.deleteOf(name)} onClick={() => { doom(name); }} />
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Pages({ marker, next }: { readonly marker: Signal<string>; readonly next: string }): JSX.Element | null {
  if (!marker.value && !next) return null;
  return (
    <div class="actions">
      <Button disabled={!marker.value} onClick={() => { marker.value = ""; }}>{texts.data.firstPage}</Button>
      <Button disabled={!next} onClick={() => { marker.value = next; }}>{texts.data.nextPage}</Button>
    </div>
  );
}

interface NewPlaceProps<Place> {
  readonly props: PlaceListProps<Place>;
  readonly onClose: () => void;
  readonly onMade: () => void;
}

function NewPlace<Place>({ props: { words, fields, make }, onClose, onMade }: NewPlaceProps<Place>): JSX.Element {
  const name = useSignal("");
  const act = async (): Promise<void> => {
    say(await make(name.value.trim()));
    onMade();
  };
  return (
    <FormDialog title={words.newPlace} onClose={onClose} action={texts.data.create} act={act}>
      <Field label={words.name} value={name.value} onInput={(value) => { name.value = value; }} hint={words.nameHint} required code />
      {fields}
    </FormDialog>
  );
}

export interface DeletePlaceProps {
  readonly words: PlaceWords;
  readonly name: string;
  readonly remove: (name: string) => Promise<void>;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeletePlace({ words, name, remove, onClose, onDeleted }: DeletePlaceProps): JSX.Element {
  const act = async (): Promise<void> => {
    await remove(name);
    say(words.deleted(name));
    onDeleted();
  };
  return <ConfirmByName title={words.deleteTitle} risk={words.deleteRisk} name={name} onClose={onClose} act={act} />;
}
