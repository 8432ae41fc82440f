// What is in a directory, a page at a time, each page with an address of its own; uploads into it.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button, Field } from "../../components/controls";
import { FormDialog } from "../../components/dialog";
import { Empty, Problem } from "../../components/messages";
import { Pager } from "../../components/pager";
import { Lacks } from "../../components/rights";
import { Time } from "../../components/parts";
import { type Column, Table } from "../../components/table";
import { createDirectory, type DirectoryPage, listDirectory, type NodeRow } from "../../protocol/files/directories";
import { childOf, type PathPlace } from "../../protocol/files/place";
import { useLoaded } from "../../state/loaded";
import { address, navigate } from "../../state/router";
import { countText, sizeText } from "../../state/times";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { FILE, FileActButton, lacking, pathAddress } from "./place";
import { FileDropArea, FileUploads } from "./uploading";

const words = texts.files;
const NOTHING: DirectoryPage = { rows: [], next: "" };

export function Listing({ place }: { readonly place: PathPlace }): JSX.Element {
  const { prefix = "", marker = "" } = address.value.query;
  const isMaking = useSignal(false);
  const right = lacking("list");
  const page = useLoaded(JSON.stringify([prefix, marker, right]), (signal) =>
    right ? Promise.resolve(NOTHING) : listDirectory(place, { prefix, marker }, signal),
  );
  const here = (change: Readonly<Record<string, string>>): string => pathAddress(place, { prefix, ...change });
  const rows = page.value.value?.rows ?? [];
  const content = (
    <>
      <div class="toolbar">
        <Field label={words.prefix} type="search" value={prefix} onInput={(value) => { navigate(here({ prefix: value }), true); }} code />
        <div class="toolbar-end">
          <Button kind="quiet" onClick={page.reload}>{texts.blobs.reload}</Button>
          {!place.snapshot && <FileActButton act="create" text={words.newDirectory} onClick={() => { isMaking.value = true; }} />}
        </div>
      </div>
      <FileUploads place={place} />
      <Problem error={page.error.value} />
      {right ? <Lacks right={right} /> : (
        <>
          {rows.length > 0 && <NodeTable place={place} rows={rows} />}
          {rows.length === 0 && page.value.value && <Nothing prefix={prefix} isFixed={place.snapshot !== undefined} />}
          <Pager count={countText(rows.length)} next={page.value.value?.next ?? ""} marker={marker} isBusy={page.isBusy.value} to={(next) => here({ marker: next })} />
        </>
      )}
      {isMaking.value && <NewDirectory place={place} onClose={() => { isMaking.value = false; }} done={page.reload} />}
    </>
  );
  if (place.snapshot) return <div class="listing">{content}</div>;
  return <FileDropArea place={place} done={page.reload}>{content}</FileDropArea>;
}

function Nothing({ prefix, isFixed }: { readonly prefix: string; readonly isFixed: boolean }): JSX.Element {
  if (prefix) return <Empty title={texts.blobs.noMatchTitle}>{words.noMatch}</Empty>;
  if (isFixed) return <Empty title={words.emptyThenTitle}>{words.emptyThen}</Empty>;
  return <Empty title={texts.blobs.emptyTitle}>{words.emptyDirectory}</Empty>;
}

function NodeTable({ place, rows }: { readonly place: PathPlace; readonly rows: readonly NodeRow[] }): JSX.Element {
  const heads = words.columns;
  const columns: Column<NodeRow>[] = [
    {
      key: "name",
      header: heads.name,
      class: "name",
      cell: (row) => {
        const child = childOf(place, row.name);
        return row.isDirectory ? <a href={pathAddress(child)}>{`${row.name}/`}</a> : <a href={pathAddress(child, FILE)}>{row.name}</a>;
      },
    },
    { key: "size", header: heads.size, class: "number", cell: (row) => (row.isDirectory ? "" : sizeText(row.sizeBytes)) },
    { key: "attributes", header: heads.attributes, class: "minor", cell: (row) => row.attributes },
    { key: "written", header: heads.written, class: "minor", cell: (row) => row.written && <Time at={row.written} /> },
  ];
  return (
    <Table
      label={words.listLabel}
      columns={columns}
      count={rows.length}
      rowAt={(index) => rowAt(rows, index)}
      keyOf={(row) => `${row.isDirectory} ${row.name}`}
    />
  );
}

function rowAt(rows: readonly NodeRow[], index: number): NodeRow {
  const row = rows[index];
  if (!row) throw new RangeError(`no row ${index}`);
  return row;
}

function NewDirectory({ place, onClose, done }: { readonly place: PathPlace; readonly onClose: () => void; readonly done: () => void }): JSX.Element {
  const name = useSignal("");
  const act = async (): Promise<void> => {
    await createDirectory(childOf(place, name.value.trim()));
    say(words.directoryMade(name.value.trim()));
    done();
  };
  return (
    <FormDialog title={words.newDirectory} onClose={onClose} action={texts.data.create} act={act}>
      <Field label={words.directoryName} value={name.value} onInput={(value) => { name.value = value; }} hint={words.directoryNameHint} required code />
    </FormDialog>
  );
}
