// One blob: what can be done with it, and tabs of what is known of it. Its properties are read again
// while it is shown, so that a lease that another takes is seen.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { ConfirmByName } from "../../components/dialog";
import { Download } from "../../components/download";
import { LeaseButtons } from "../../components/lease";
import { Empty, Problem } from "../../components/messages";
import { Tabs } from "../../components/tabs";
import { type BlobProperties, blobProperties, deleteBlob, takeSnapshot } from "../../protocol/blob/blobs";
import { heldId } from "../../protocol/across/leases";
import { type BlobPlace, withoutState } from "../../protocol/blob/place";
import { ServiceError } from "../../protocol/errors";
import { repeat } from "../../state/live";
import { address, navigate } from "../../state/router";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { Blocks } from "./blocks";
import { MetadataAndTags } from "./metadata";
import { ActButton, blobAddress, containerAddress, crumbsAbove, Crumbs, lacking, Lacks } from "./place";
import { Preview } from "./preview";
import { PropertyFacts } from "./properties";
import { SasDialog } from "./sas_dialog";
import { Versions } from "./versions";

const words = texts.blobs;
const LIVE_MS = 1500;

type Tab = "properties" | "metadata" | "versions" | "blocks";

export function OneBlob({ place }: { readonly place: BlobPlace }): JSX.Element {
  const right = lacking("read");
  return (
    <>
      {right ? <><Crumbs crumbs={crumbsAbove(place, place.blob)} last={lastName(place)} /><Lacks right={right} /></> : <Readable place={place} />}
    </>
  );
}

function Readable({ place }: { readonly place: BlobPlace }): JSX.Element {
  const properties = useSignal<BlobProperties | null>(null);
  const error = useSignal<unknown>(null);
  const round = useSignal(0);
  const read = async (signal?: AbortSignal): Promise<void> => {
    try {
      properties.value = await blobProperties(place, signal);
      error.value = null;
    } catch (problem) {
      if (problem instanceof ServiceError && problem.status === 404) properties.value = null;
      throw problem;
    }
  };
  useEffect(() => repeat(read, LIVE_MS, (problem) => { error.value = problem; }), []);
  const changed = (): void => {
    round.value += 1;
    read().catch((problem: unknown) => { error.value = problem; });
  };
  const state = place.snapshot ?? place.version;
  const isGone = error.value instanceof ServiceError && error.value.status === 404;
  return (
    <div class="one-blob">
      <div class="place-head">
        <Crumbs crumbs={crumbsAbove(place, place.blob)} last={lastName(place)} {...(state ? { suffix: state } : {})} />
        {properties.value && <Acts place={place} properties={properties.value} changed={changed} />}
      </div>
      {isGone ? <Empty title={words.goneTitle}>{words.gone}</Empty> : <Problem error={error.value} />}
      {isGone && <Versions place={place} round={round.value} changed={changed} />}
      {properties.value && <Parts place={place} properties={properties.value} round={round.value} changed={changed} />}
    </div>
  );
}

function lastName({ blob }: BlobPlace): string {
  return blob.split("/").pop() || blob;
}

interface PartProps {
  readonly place: BlobPlace;
  readonly properties: BlobProperties;
  readonly changed: () => void;
}

function Acts({ place, properties, changed }: PartProps): JSX.Element {
  const open = useSignal<"delete" | "sas" | null>(null);
  const isState = place.snapshot !== undefined || place.version !== undefined;
  const snapshot = (): void => {
    takeSnapshot(place).then((at) => { say(words.snapshotTaken(at)); }, complain).finally(changed);
  };
  return (
    <div class="actions">
      <Download place={place} properties={properties} right={lacking("read")} refused={words.downloadNeedsKey} />
      {!isState && <ActButton act="makeSas" text={words.copySasLink} onClick={() => { open.value = "sas"; }} />}
      {!isState && <ActButton act="create" text={words.takeSnapshot} onClick={snapshot} />}
      {!isState && <LeaseButtons place={place} state={properties.leaseState} right={lacking("write")} changed={changed} />}
      <ActButton act={place.version ? "deleteVersion" : "delete"} kind="danger" text={words.delete} onClick={() => { open.value = "delete"; }} />
      {open.value === "sas" && <SasDialog place={place} onClose={() => { open.value = null; }} />}
      {open.value === "delete" && <DeleteDialog place={place} onClose={() => { open.value = null; }} />}
    </div>
  );
}

function DeleteDialog({ place, onClose }: { readonly place: BlobPlace; readonly onClose: () => void }): JSX.Element {
  const state = place.snapshot ?? place.version;
  const act = async (): Promise<void> => {
    await deleteBlob(place, state ? undefined : heldId(place));
    say(words.blobDeleted(place.blob));
    const folder = place.blob.slice(0, place.blob.lastIndexOf("/") + 1);
    navigate(state ? blobAddress(withoutState(place), { tab: "versions" }) : containerAddress(place, { prefix: folder }));
  };
  return (
    <ConfirmByName
      title={state ? words.deleteOneTitle(state) : words.deleteBlobTitle(place.blob)}
      risk={state ? words.deleteOneRisk : words.deleteBlobRisk}
      name={place.blob}
      onClose={onClose}
      act={act}
    />
  );
}

function Parts({ place, properties, round, changed }: PartProps & { readonly round: number }): JSX.Element {
  const asked = address.value.query["tab"] as Tab | undefined;
  const isPages = properties.type === "PageBlob";
  const tabs: (readonly [Tab, string])[] = [
    ["properties", words.tabs.properties],
    ["metadata", words.tabs.metadata],
    ["versions", words.tabs.versions],
    ...(properties.type === "AppendBlob" ? [] : [["blocks", isPages ? words.tabs.pages : words.tabs.blocks] as const]),
  ];
  const tab = tabs.find(([name]) => name === asked)?.[0] ?? "properties";
  return (
    <Tabs<Tab>
      label={words.parts}
      tabs={tabs}
      chosen={tab}
      onChoose={(one) => { navigate(blobAddress(place, { tab: one === "properties" ? "" : one }), true); }}
    >
      {tab === "properties" && (
        <div class="columns blob-columns">
          <PropertyFacts place={place} properties={properties} changed={changed} />
          <Preview place={place} properties={properties} />
        </div>
      )}
      {tab === "metadata" && <MetadataAndTags place={place} properties={properties} changed={changed} />}
      {tab === "versions" && <Versions place={place} current={properties} round={round} changed={changed} />}
      {tab === "blocks" && <Blocks place={place} isPages={isPages} etag={properties.etag} />}
    </Tabs>
  );
}
