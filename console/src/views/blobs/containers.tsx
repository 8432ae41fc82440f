// The containers of an account.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button, Checkbox, Field } from "../../components/controls";
import { ConfirmByName, FormDialog } from "../../components/dialog";
import { LeaseText } from "../../components/lease";
import { Empty, Problem } from "../../components/messages";
import { Pager } from "../../components/pager";
import { Time } from "../../components/parts";
import { type Column, Table } from "../../components/table";
import { createContainer, deleteContainer, restoreContainer } from "../../protocol/blob/containers";
import { heldId } from "../../protocol/across/leases";
import { type ContainerRow, listContainers } from "../../protocol/blob/listing";
import type { AccountPlace } from "../../protocol/blob/place";
import { useLoaded } from "../../state/loaded";
import { address, addressOf, navigate } from "../../state/router";
import { countText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { ActButton, containerAddress, Crumbs, lacking, Lacks } from "./place";

const words = texts.blobs;

export function Containers({ place }: { readonly place: AccountPlace }): JSX.Element {
  const { prefix = "", marker = "", deleted = "" } = address.value.query;
  const isMaking = useSignal(false);
  const isDeleting = useSignal<ContainerRow | null>(null);
  const right = lacking("listContainers");
  const page = useLoaded(JSON.stringify([prefix, marker, deleted, right]), (signal) =>
    right ? Promise.resolve({ rows: [], next: "" }) : listContainers(place, { prefix, marker, deleted: deleted !== "", signal }),
  );
  const here = (change: Readonly<Record<string, string>>): string =>
    addressOf("blobs", [place.account], { prefix, deleted, ...change });
  const restore = (row: ContainerRow): void => {
    restoreContainer(place, row.name, row.deletedVersion).then(() => { say(words.restored(row.name)); page.reload(); }, complain);
  };
  const rows = page.value.value?.rows ?? [];
  return (
    <div class="listing">
      <Crumbs crumbs={[]} last={words.containers} suffix={place.account} />
      <div class="toolbar">
        <Field label={words.prefix} type="search" value={prefix} onInput={(value) => { navigate(here({ prefix: value }), true); }} code />
        <div class="toolbar-end">
          <Checkbox label={words.showDeleted} checked={deleted !== ""} onChange={(checked) => { navigate(here({ deleted: checked ? "1" : "" }), true); }} />
          <Button kind="quiet" onClick={page.reload}>{words.reload}</Button>
          <ActButton act="createContainer" kind="primary" text={words.newContainer} onClick={() => { isMaking.value = true; }} />
        </div>
      </div>
      <Problem error={page.error.value} />
      {right ? <Lacks right={right} /> : (
        <>
          {rows.length > 0 && (
            <Table
              label={words.containers}
              columns={columns(place, restore, (row) => { isDeleting.value = row; })}
              count={rows.length}
              rowAt={(index) => rowAt(rows, index)}
              keyOf={(row) => `${row.name} ${row.deletedVersion}`}
            />
          )}
          {rows.length === 0 && page.value.value && <Empty title={prefix ? words.noMatchTitle : words.emptyContainersTitle}>{prefix ? words.noMatch : words.emptyContainers}</Empty>}
          <Pager count={countText(rows.length)} next={page.value.value?.next ?? ""} marker={marker} isBusy={page.isBusy.value} to={(next) => here({ marker: next })} />
        </>
      )}
      {isMaking.value && <NewContainer place={place} onClose={() => { isMaking.value = false; }} done={page.reload} />}
      {isDeleting.value && <DeleteContainer place={place} name={isDeleting.value.name} onClose={() => { isDeleting.value = null; }} done={page.reload} />}
    </div>
  );
}

function columns(place: AccountPlace, restore: (row: ContainerRow) => void, remove: (row: ContainerRow) => void): Column<ContainerRow>[] {
  return [
    {
      key: "name",
      header: words.columns.name,
      class: "name",
      cell: (row) => (row.deletedVersion ? row.name : <a href={containerAddress({ ...place, container: row.name })}>{row.name}</a>),
    },
    { key: "access", header: words.columns.access, class: "minor", cell: (row) => words.access[row.access as keyof typeof words.access] },
    { key: "lease", header: words.columns.lease, cell: (row) => <LeaseText state={row.leaseState} /> },
    { key: "notes", header: words.columns.notes, class: "minor", cell: (row) => <Notes row={row} /> },
    { key: "modified", header: words.columns.modified, class: "minor", cell: (row) => row.modified && <Time at={row.modified} /> },
    {
      key: "acts",
      header: words.columns.acts,
      class: "acts",
      cell: (row) =>
        row.deletedVersion ? (
          <ActButton act="restoreContainer" kind="quiet" text={words.restore} name={words.restoreNamed(row.name)} onClick={() => { restore(row); }} />
        ) : (
          <ActButton act="deleteContainer" kind="quiet" text={words.delete} name={`${words.delete} ${row.name}`} onClick={() => { remove(row); }} />
        ),
    },
  ];
}

function Notes({ row }: { readonly row: ContainerRow }): JSX.Element {
  const notes = [
    ...(row.deletedVersion ? [words.deletedDays(row.remainingDays)] : []),
    ...(row.hasPolicy ? [words.retention] : []),
    ...(row.hasHold ? [words.legalHold] : []),
  ];
  return <>{notes.map((one) => <span key={one} class="tag first">{one}</span>)}</>;
}

export function rowAt<Row>(rows: readonly Row[], index: number): Row {
  const row = rows[index];
  if (!row) throw new RangeError(`no row ${index}`);
  return row;
}

interface DialogOf {
  readonly place: AccountPlace;
  readonly onClose: () => void;
  readonly done: () => void;
}

function NewContainer({ place, onClose, done }: DialogOf): JSX.Element {
  const name = useSignal("");
  const act = async (): Promise<void> => {
    await createContainer({ ...place, container: name.value });
    say(words.created(name.value));
    done();
  };
  return (
    <FormDialog title={words.newContainer} onClose={onClose} action={words.create} disabled={name.value === ""} act={act}>
      <Field label={words.containerName} value={name.value} hint={words.containerNameHint} onInput={(value) => { name.value = value; }} code />
    </FormDialog>
  );
}

export function DeleteContainer({ place, name, onClose, done }: DialogOf & { readonly name: string }): JSX.Element {
  const act = async (): Promise<void> => {
    const container = { ...place, container: name };
    await deleteContainer(container, heldId(container));
    say(words.containerDeleted(name));
    done();
  };
  return <ConfirmByName title={words.deleteContainerTitle(name)} risk={words.deleteContainerRisk} name={name} onClose={onClose} act={act} />;
}
