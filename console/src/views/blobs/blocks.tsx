// The blocks of a block blob, those not committed too; the ranges of pages of a page blob.

import type { JSX } from "preact";

import { Empty, Problem } from "../../components/messages";
import { Table } from "../../components/table";
import { type Block, blockList, type PageRange, pageRanges } from "../../protocol/blob/blobs";
import type { BlobPlace } from "../../protocol/blob/place";
import { useLoaded } from "../../state/loaded";
import { countText, sizeText } from "../../state/times";
import { texts } from "../../texts";
import { rowAt } from "./containers";

const words = texts.blobs;

export function Blocks({ place, isPages, etag }: { readonly place: BlobPlace; readonly isPages: boolean; readonly etag: string }): JSX.Element {
  return isPages ? <Pages place={place} etag={etag} /> : <BlockTable place={place} etag={etag} />;
}

interface Numbered extends Block {
  readonly number: number;
}

function BlockTable({ place, etag }: { readonly place: BlobPlace; readonly etag: string }): JSX.Element {
  const blocks = useLoaded(etag, async (signal) => (await blockList(place, "all", signal)).map((one, at): Numbered => ({ ...one, number: at + 1 })));
  const rows = blocks.value.value ?? [];
  const heads = words.blockColumns;
  return (
    <>
      <Problem error={blocks.error.value} />
      {blocks.value.value && rows.length === 0 && <Empty title={words.blocksEmpty} />}
      {rows.length > 0 && (
        <Table<Numbered>
          label={words.blocksLabel}
          count={rows.length}
          rowAt={(index) => rowAt(rows, index)}
          keyOf={(row) => row.number}
          columns={[
            { key: "number", header: heads.number, class: "number", cell: (row) => row.number },
            { key: "id", header: heads.id, class: "name code-cell", cell: (row) => row.id },
            { key: "size", header: heads.size, class: "number", cell: (row) => sizeText(row.sizeBytes) },
            { key: "state", header: heads.state, cell: (row) => (row.isCommitted ? words.committed : words.uncommitted) },
          ]}
        />
      )}
    </>
  );
}

function Pages({ place, etag }: { readonly place: BlobPlace; readonly etag: string }): JSX.Element {
  const ranges = useLoaded(etag, (signal) => pageRanges(place, signal));
  const rows = ranges.value.value ?? [];
  const heads = words.pageColumns;
  return (
    <>
      <Problem error={ranges.error.value} />
      {ranges.value.value && rows.length === 0 && <Empty title={words.pagesEmpty} />}
      {rows.length > 0 && (
        <Table<PageRange>
          label={words.pagesLabel}
          count={rows.length}
          rowAt={(index) => rowAt(rows, index)}
          keyOf={(row) => row.start}
          columns={[
            { key: "start", header: heads.start, class: "number", cell: (row) => countText(row.start) },
            { key: "end", header: heads.end, class: "number", cell: (row) => countText(row.end) },
            { key: "size", header: heads.size, class: "number", cell: (row) => sizeText(row.end - row.start + 1) },
          ]}
        />
      )}
    </>
  );
}
