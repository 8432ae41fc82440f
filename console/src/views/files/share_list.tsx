// The shares of an account, those that were deleted and are kept too.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Checkbox, Field } from "../../components/controls";
import { LeaseText } from "../../components/lease";
import { Empty } from "../../components/messages";
import { Time, ViewHead } from "../../components/parts";
import { heldId } from "../../protocol/across/leases";
import type { SharePlace } from "../../protocol/files/place";
import { createShare, deleteShare, listShares, restoreShare, type ShareRow } from "../../protocol/files/shares";
import { currentSession } from "../../state/session";
import { countText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { type PlaceColumn, PlaceList, type PlacePage } from "../places/place_list";
import { FileActButton, lacking, shareAddress } from "./place";
import { readQuota } from "./quota";

const PAGE_SHARES = 100;
const words = texts.files;

export function ShareList({ owner }: { readonly owner: string }): JSX.Element {
  const page = useSignal<PlacePage<ShareRow> | null>(null);
  const withDeleted = useSignal(false);
  const quota = useSignal("");
  const right = lacking("listShares");
  const { credential } = currentSession();
  const placeOf = (share: string): SharePlace => ({ credential, account: owner, share });
  const restore = (row: ShareRow, changed: () => void): void => {
    restoreShare(placeOf(row.name), row.name, row.deletedVersion).then(() => { say(words.restored(row.name)); changed(); }, complain);
  };
  if (right) return <><ViewHead title={words.title} /><Empty title={texts.blobs.missing(right)}>{words.nameTheShare}</Empty></>;
  return (
    <PlaceList<ShareRow>
      words={words}
      page={page}
      list={(query, signal) => listShares(placeOf(""), { ...query, include: withDeleted.value ? "deleted" : "", maxresults: PAGE_SHARES }, signal)}
      shownBy={String(withDeleted.value)}
      nameOf={(row) => row.name}
      keyOf={(row) => `${row.name} ${row.deletedVersion}`}
      hrefOf={(row) => (row.deletedVersion ? "" : shareAddress(placeOf(row.name)))}
      columns={COLUMNS}
      filters={<Checkbox label={texts.blobs.showDeleted} checked={withDeleted.value} onChange={(checked) => { withDeleted.value = checked; }} />}
      fields={<Field label={words.quota} value={quota.value} onInput={(value) => { quota.value = value; }} hint={words.quotaHint} placeholder={words.quotaDefault} />}
      make={async (share) => {
        await createShare(placeOf(share), quota.value.trim() ? readQuota(quota.value) : null);
        quota.value = "";
        return words.made(share);
      }}
      lacks={{ make: lacking("createShare"), remove: lacking("deleteShare") }}
      unlisted={words.nameTheShare}
      remove={(share) => deleteShare(placeOf(share), heldId(placeOf(share)))}
      actOf={(row, changed) => (row.deletedVersion ? (
        <FileActButton act="restoreShare" kind="quiet" text={texts.blobs.restore} name={texts.blobs.restoreNamed(row.name)} onClick={() => { restore(row, changed); }} />
      ) : null)}
    />
  );
}

const COLUMNS: readonly PlaceColumn<ShareRow>[] = [
  { key: "quota", header: words.quotaColumn, class: "number", cell: (row) => words.gib(countText(row.quotaGib)) },
  { key: "lease", header: texts.blobs.columns.lease, class: "minor", cell: (row) => (row.deletedVersion ? <Kept row={row} /> : <LeaseText state={row.leaseState} />) },
  { key: "modified", header: texts.blobs.columns.modified, class: "minor", cell: (row) => row.modified && <Time at={row.modified} /> },
];

function Kept({ row }: { readonly row: ShareRow }): JSX.Element {
  return <span class="tag first">{texts.blobs.deletedDays(row.remainingDays)}</span>;
}
