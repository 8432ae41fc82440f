// One container: its blobs as folders or flat, uploads into it, its access and lease.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button, Checkbox, Field, Select } from "../../components/controls";
import { LeaseText } from "../../components/lease";
import { Empty, Problem } from "../../components/messages";
import { Pager } from "../../components/pager";
import { Time } from "../../components/parts";
import { type Column, Table } from "../../components/table";
import { Tabs } from "../../components/tabs";
import { restoreBlob } from "../../protocol/blob/blobs";
import { type BlobRow, findByTags, listBlobs } from "../../protocol/blob/listing";
import type { ContainerPlace } from "../../protocol/blob/place";
import { type Loaded, useLoaded } from "../../state/loaded";
import { address, addressOf, navigate } from "../../state/router";
import { countText, sizeText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { DeleteContainer, rowAt } from "./containers";
import { ContainerSettings } from "./container_settings";
import { ActButton, blobAddress, containerAddress, crumbsAbove, Crumbs, lacking, Lacks } from "./place";
import { SasDialog } from "./sas_dialog";
import { BlobDropArea, BlobUploads } from "./uploading";

const words = texts.blobs;

type Tab = "blobs" | "settings";

export function OneContainer({ place }: { readonly place: ContainerPlace }): JSX.Element {
  const { tab = "blobs", prefix = "" } = address.value.query;
  const isDeleting = useSignal(false);
  const isSharing = useSignal(false);
  const isFolder = prefix.endsWith("/");
  const crumbs = isFolder ? crumbsAbove(place, prefix.slice(0, -1)) : crumbsAbove(place, "").slice(0, 1);
  const last = isFolder ? `${prefix.slice(0, -1).split("/").pop() ?? ""}/` : place.container;
  return (
    <div class="listing">
      <div class="place-head">
        <Crumbs crumbs={crumbs} last={last} />
        <div class="actions">
          <ActButton act="makeSas" text={words.copySasLink} onClick={() => { isSharing.value = true; }} />
          <ActButton act="deleteContainer" kind="danger" text={words.delete} onClick={() => { isDeleting.value = true; }} />
        </div>
      </div>
      <Tabs<Tab>
        label={words.parts}
        tabs={[["blobs", words.tabs.blobs], ["settings", words.tabs.settings]]}
        chosen={tab === "settings" ? "settings" : "blobs"}
        onChoose={(one) => { navigate(containerAddress(place, { tab: one === "blobs" ? "" : one, prefix }), true); }}
      >
        {tab === "settings" ? <ContainerSettings place={place} /> : <Listing place={place} />}
      </Tabs>
      {isSharing.value && <SasDialog place={place} onClose={() => { isSharing.value = false; }} />}
      {isDeleting.value && (
        <DeleteContainer place={place} name={place.container} onClose={() => { isDeleting.value = false; }} done={() => { navigate(addressOf("blobs", [place.account])); }} />
      )}
    </div>
  );
}

interface Asked {
  readonly prefix: string;
  readonly marker: string;
  readonly tags: string;
  readonly isFlat: boolean;
  readonly deleted: string;
}

function Listing({ place }: { readonly place: ContainerPlace }): JSX.Element {
  const { prefix = "", marker = "", tags = "", flat = "", deleted = "" } = address.value.query;
  const asked = { prefix, marker, tags, isFlat: flat !== "", deleted };
  const right = lacking(tags ? "find" : "list");
  const page = useLoaded(JSON.stringify([asked, right]), (signal) => (right ? Promise.resolve({ rows: [], next: "" }) : read(place, asked, signal)));
  const here = (change: Readonly<Record<string, string>>): string => containerAddress(place, { prefix, tags, flat, deleted, ...change });
  const rows = page.value.value?.rows ?? [];
  // What is typed as a prefix is no folder yet; files go into the folder that is shown.
  const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
  return (
    <BlobDropArea place={place} folder={folder} done={page.reload}>
      <Filters asked={asked} here={here} place={place} folder={folder} page={page} />
      <BlobUploads place={place} />
      <Problem error={page.error.value} />
      {right ? <Lacks right={right} /> : (
        <>
          {rows.length > 0 && <BlobTable place={place} rows={rows} here={here} shownPrefix={folder} isFlat={asked.isFlat || tags !== ""} reload={page.reload} />}
          {rows.length === 0 && page.value.value && <Nothing prefix={prefix} tags={tags} />}
          <Pager count={countText(rows.length)} next={page.value.value?.next ?? ""} marker={marker} isBusy={page.isBusy.value} to={(next) => here({ marker: next })} />
        </>
      )}
    </BlobDropArea>
  );
}

function read(place: ContainerPlace, asked: Asked, signal: AbortSignal): ReturnType<typeof listBlobs> {
  if (asked.tags) return findByTags(place, asked.tags, { marker: asked.marker, signal });
  const { prefix, marker } = asked;
  const include = asked.deleted ? "deleted" : "";
  return listBlobs(place, { prefix, marker, include, signal, ...(asked.isFlat ? {} : { delimiter: "/" }) });
}

interface FiltersProps {
  readonly asked: Asked;
  readonly here: (change: Readonly<Record<string, string>>) => string;
  readonly place: ContainerPlace;
  readonly folder: string;
  readonly page: Loaded<unknown>;
}

function Filters({ asked, here, page }: FiltersProps): JSX.Element {
  const typed = useSignal(asked.tags);
  const search = (event: Event): void => {
    event.preventDefault();
    navigate(here({ tags: typed.value.trim(), marker: "" }));
  };
  return (
    <div class="toolbar">
      <Field label={words.prefix} type="search" value={asked.prefix} onInput={(value) => { navigate(here({ prefix: value, marker: "", tags: "" }), true); }} code />
      <form class="with-button" onSubmit={search}>
        <Field label={words.byTags} type="search" value={typed.value} placeholder={words.byTagsHint} onInput={(value) => { typed.value = value; }} code />
        <Button type="submit">{words.search}</Button>
      </form>
      <Select
        label={words.view}
        value={asked.isFlat ? "1" : ""}
        options={[["", words.folders], ["1", words.flat]]}
        onChange={(value) => { navigate(here({ flat: value, marker: "" }), true); }}
      />
      <div class="toolbar-end">
        <Checkbox label={words.showDeleted} checked={asked.deleted !== ""} onChange={(checked) => { navigate(here({ deleted: checked ? "1" : "", marker: "" }), true); }} />
        <Button kind="quiet" onClick={page.reload}>{words.reload}</Button>
      </div>
    </div>
  );
}

function Nothing({ prefix, tags }: { readonly prefix: string; readonly tags: string }): JSX.Element {
  if (tags) return <Empty title={words.emptyFoundTitle}>{words.emptyFound}</Empty>;
  if (prefix && !prefix.endsWith("/")) return <Empty title={words.noMatchTitle}>{words.noMatch}</Empty>;
  return <Empty title={words.emptyTitle}>{words.empty}</Empty>;
}

interface BlobTableProps {
  readonly place: ContainerPlace;
  readonly rows: readonly BlobRow[];
  readonly here: (change: Readonly<Record<string, string>>) => string;
  /** Names are shown without it: the heading says it. */
  readonly shownPrefix: string;
  readonly isFlat: boolean;
  readonly reload: () => void;
}

function BlobTable({ place, rows, here, shownPrefix, isFlat, reload }: BlobTableProps): JSX.Element {
  const restore = (row: BlobRow): void => {
    restoreBlob({ ...place, blob: row.name }).then(() => { say(words.restored(row.name)); reload(); }, complain);
  };
  const nameOf = (row: BlobRow): string => (isFlat ? row.name : row.name.slice(shownPrefix.length)) || row.name;
  const columns: Column<BlobRow>[] = [
    {
      key: "name",
      header: words.columns.name,
      class: "name",
      cell: (row) => {
        const tag = row.isDeleted && <span class="tag">{words.deleted}</span>;
        if (row.isDeleted) return <>{nameOf(row)}{tag}</>;
        return <a href={row.isFolder ? here({ prefix: row.name, marker: "" }) : blobAddress({ ...place, blob: row.name })}>{nameOf(row)}</a>;
      },
    },
    { key: "size", header: words.columns.size, class: "number", cell: (row) => (row.isFolder || !row.modified ? "" : sizeText(row.sizeBytes)) },
    { key: "type", header: words.columns.type, class: "minor type-cell", cell: (row) => row.contentType },
    { key: "tier", header: words.columns.tier, class: "minor", cell: (row) => row.tier },
    { key: "lease", header: words.columns.lease, class: "minor", cell: (row) => <LeaseText state={row.leaseState} /> },
    {
      key: "modified",
      header: words.columns.modified,
      class: "minor",
      cell: (row) => (row.modified ? <Time at={row.modified} /> : row.tags.map(([key, value]) => <span key={key} class="tag first">{`${key}=${value}`}</span>)),
    },
    ...(rows.some((row) => row.isDeleted) ? [{
      key: "acts",
      header: words.columns.acts,
      class: "acts",
      cell: (row: BlobRow) =>
        row.isDeleted && <ActButton act="write" kind="quiet" text={words.restore} name={words.restoreNamed(row.name)} onClick={() => { restore(row); }} />,
    }] : []),
  ];
  return (
    <Table
      label={words.listLabel}
      columns={columns}
      count={rows.length}
      rowAt={(index) => rowAt(rows, index)}
      keyOf={(row) => `${row.isFolder} ${row.name} ${row.version} ${row.snapshot} ${row.isDeleted}`}
    />
  );
}
