// The snapshots and versions of a blob: look at, compare, promote, restore, delete.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { ConfirmByName, FormDialog } from "../../components/dialog";
import { Empty, Problem } from "../../components/messages";
import { Panel, Time } from "../../components/parts";
import { type BlobProperties, deleteBlob, listVersions, promote, restoreBlob } from "../../protocol/blob/blobs";
import { heldId } from "../../protocol/across/leases";
import type { BlobRow } from "../../protocol/blob/listing";
import { type BlobPlace, withoutState } from "../../protocol/blob/place";
import { useLoaded } from "../../state/loaded";
import { sizeText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { Compare, type NamedState } from "./compare";
import { ActButton, blobAddress, lacking, Lacks } from "./place";

const words = texts.blobs;

export interface VersionsProps {
  readonly place: BlobPlace;
  /** The blob as it is now, where it is. */
  readonly current?: BlobProperties;
  readonly round: number;
  readonly changed: () => void;
}

interface Opened {
  readonly act: "compare" | "promote" | "delete";
  readonly state: BlobPlace;
}

export function Versions({ place, current, round, changed }: VersionsProps): JSX.Element {
  const blob = withoutState(place);
  const right = lacking("list");
  const states = useLoaded(`${round} ${right}`, (signal) => (right ? Promise.resolve([]) : listVersions(blob, signal)));
  const opened = useSignal<Opened | null>(null);
  if (right) return <Lacks right={right} />;
  const done = (said: string): void => {
    say(said);
    states.reload();
    changed();
  };
  const restore = (): void => {
    restoreBlob(blob).then(() => { done(words.restored(blob.blob)); }, complain);
  };
  const others = (states.value.value ?? []).filter((row) => row.snapshot || row.version || row.isDeleted);
  const comparable = statesOf(blob, current !== undefined, others);
  const close = (): void => { opened.value = null; };
  return (
    <Panel title={words.versionsLabel}>
      <p class="hint">{words.versionsHint}</p>
      <Problem error={states.error.value} />
      {states.value.value && others.length === 0 && <Empty title={words.versionsEmpty} />}
      {others.length > 0 && <States rows={others} blob={blob} canCompare={comparable.length > 1} open={(one) => { opened.value = one; }} restore={restore} />}
      {opened.value?.act === "compare" && <Compare states={comparable} chosen={keyOf(opened.value.state)} onClose={close} />}
      {opened.value?.act === "promote" && <PromoteDialog state={opened.value.state} onClose={close} done={done} />}
      {opened.value?.act === "delete" && <DeleteState state={opened.value.state} onClose={close} done={done} />}
    </Panel>
  );
}

interface StatesProps {
  readonly rows: readonly BlobRow[];
  readonly blob: BlobPlace;
  readonly canCompare: boolean;
  readonly open: (opened: Opened) => void;
  readonly restore: () => void;
}

function States({ rows, blob, canCompare, open, restore }: StatesProps): JSX.Element {
  return (
    <div class="scroll">
      <table aria-label={words.versionsLabel}>
        <thead>
          <tr>
            <th scope="col">{words.stateAt}</th>
            <th scope="col" class="number">{words.columns.size}</th>
            <th scope="col" class="minor">{words.columns.modified}</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.snapshot} ${row.version} ${row.isDeleted}`}>
              <td><StateName row={row} blob={blob} /></td>
              <td class="number">{sizeText(row.sizeBytes)}</td>
              <td class="minor">{row.modified && <Time at={row.modified} />}</td>
              <td class="acts"><StateActs row={row} blob={blob} canCompare={canCompare} open={open} restore={restore} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Return what can be compared: the blob as it is now, and each state that is not deleted. */
function statesOf(blob: BlobPlace, hasCurrent: boolean, rows: readonly BlobRow[]): NamedState[] {
  const kept = rows.filter((row) => !row.isDeleted && !row.isCurrent);
  return [
    ...(hasCurrent ? [{ key: keyOf(blob), text: texts.compare.now, place: blob }] : []),
    ...kept.map((row) => {
      const place = placeOf(blob, row);
      return { key: keyOf(place), text: `${words.versionKinds[kindOf(row)]} ${row.snapshot || row.version}`, place };
    }),
  ];
}

function keyOf(place: BlobPlace): string {
  return `${place.snapshot ?? ""} ${place.version ?? ""}`;
}

function kindOf(row: BlobRow): keyof typeof words.versionKinds {
  if (row.isDeleted) return "deleted";
  if (row.snapshot) return "snapshot";
  return row.isCurrent ? "current" : "version";
}

function placeOf(blob: BlobPlace, row: BlobRow): BlobPlace {
  return row.snapshot ? { ...blob, snapshot: row.snapshot } : { ...blob, version: row.version };
}

function StateName({ row, blob }: { readonly row: BlobRow; readonly blob: BlobPlace }): JSX.Element {
  const at = row.snapshot || row.version;
  return (
    <>
      {row.isDeleted || row.isCurrent ? <code>{at}</code> : <a href={blobAddress(placeOf(blob, row))}><code>{at}</code></a>}
      <span class="tag">{words.versionKinds[kindOf(row)]}</span>
    </>
  );
}

function StateActs({ row, blob, canCompare, open, restore }: Omit<StatesProps, "rows"> & { readonly row: BlobRow }): JSX.Element | null {
  if (row.isCurrent) return null;
  const at = row.snapshot || row.version;
  const named = (verb: string): string => `${verb} ${at}`;
  if (row.isDeleted) return <ActButton act="write" kind="quiet" text={words.restore} name={named(words.restore)} onClick={restore} />;
  const state = placeOf(blob, row);
  return (
    <>
      {canCompare && <ActButton act="read" kind="quiet" text={words.compare} name={named(words.compare)} onClick={() => { open({ act: "compare", state }); }} />}
      <ActButton act="write" kind="quiet" text={words.promote} name={named(words.promote)} onClick={() => { open({ act: "promote", state }); }} />
      <ActButton act={row.snapshot ? "delete" : "deleteVersion"} kind="quiet" text={words.delete} name={named(words.delete)} onClick={() => { open({ act: "delete", state }); }} />
    </>
  );
}

interface StateDialogProps {
  readonly state: BlobPlace;
  readonly onClose: () => void;
  readonly done: (said: string) => void;
}

function PromoteDialog({ state, onClose, done }: StateDialogProps): JSX.Element {
  const act = async (): Promise<void> => {
    await promote(state, heldId(state));
    done(words.promoted);
  };
  return (
    <FormDialog title={words.promoteTitle(state.snapshot ?? state.version ?? "")} onClose={onClose} action={words.promote} act={act}>
      <p>{words.promoteText}</p>
    </FormDialog>
  );
}

function DeleteState({ state, onClose, done }: StateDialogProps): JSX.Element {
  const act = async (): Promise<void> => {
    await deleteBlob(state);
    done(words.blobDeleted(state.snapshot ?? state.version ?? ""));
  };
  return <ConfirmByName title={words.deleteOneTitle(state.snapshot ?? state.version ?? "")} risk={words.deleteOneRisk} name={state.blob} onClose={onClose} act={act} />;
}
