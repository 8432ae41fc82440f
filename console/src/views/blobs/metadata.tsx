// A blob's metadata and its tags, as rows that can be changed.

import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button } from "../../components/controls";
import { Problem } from "../../components/messages";
import { Panel } from "../../components/parts";
import { type BlobProperties, blobTags, setBlobMetadata, setBlobTags } from "../../protocol/blob/blobs";
import { heldId } from "../../protocol/blob/leases";
import type { Pairs } from "../../protocol/blob/listing";
import type { BlobPlace } from "../../protocol/blob/place";
import type { Act } from "../../protocol/blob/rights";
import { useLoaded } from "../../state/loaded";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { ActButton, lacking, Lacks } from "./place";

const words = texts.blobs;

export interface MetadataProps {
  readonly place: BlobPlace;
  readonly properties: BlobProperties;
  readonly changed: () => void;
}

export function MetadataAndTags({ place, properties, changed }: MetadataProps): JSX.Element {
  const isFixed = place.snapshot !== undefined || place.version !== undefined;
  const saveMetadata = async (pairs: Pairs): Promise<void> => {
    await setBlobMetadata(place, pairs, properties.etag, heldId(place));
    say(words.metadataSaved);
    changed();
  };
  const right = lacking("tags");
  return (
    <div class="columns">
      <Panel title={words.metadata}>
        <p class="hint">{words.metadataHint}</p>
        <PairsForm label={words.metadata} pairs={properties.metadata} act="write" isFixed={isFixed} save={saveMetadata} />
      </Panel>
      <Panel title={words.tagsHeading}>
        <p class="hint">{words.tagsHint}</p>
        {right ? <Lacks right={right} /> : <Tags place={place} isFixed={isFixed} changed={changed} />}
      </Panel>
    </div>
  );
}

function Tags({ place, isFixed, changed }: { readonly place: BlobPlace; readonly isFixed: boolean; readonly changed: () => void }): JSX.Element {
  const tags = useLoaded(place.blob, (signal) => blobTags(place, signal));
  const save = async (pairs: Pairs): Promise<void> => {
    await setBlobTags(place, pairs, heldId(place));
    say(words.tagsSaved);
    tags.reload();
    changed();
  };
  return (
    <>
      <Problem error={tags.error.value} />
      {tags.value.value && <PairsForm label={words.tagsHeading} pairs={tags.value.value} act="tags" isFixed={isFixed} save={save} />}
    </>
  );
}

interface PairsFormProps {
  readonly label: string;
  readonly pairs: Pairs;
  readonly act: Act;
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

function PairsForm({ label, pairs, act, isFixed, save }: PairsFormProps): JSX.Element {
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
          <ActButton act={act} kind="primary" text={words.save} onClick={submit} />
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
