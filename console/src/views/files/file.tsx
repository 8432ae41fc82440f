// One file: what can be done with it, and tabs of what is known of it. It is read again while it is
// shown, so that a lease, an open or a lock that another takes is seen.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Download } from "../../components/download";
import { LeaseButtons } from "../../components/lease";
import { Empty, Problem } from "../../components/messages";
import { Lacks } from "../../components/rights";
import { Tabs } from "../../components/tabs";
import type { ReadProperties } from "../../protocol/across/download";
import { ServiceError } from "../../protocol/errors";
import type { NodeProperties } from "../../protocol/files/nodes";
import type { PathPlace } from "../../protocol/files/place";
import { address, navigate } from "../../state/router";
import { texts } from "../../texts";
import { Preview } from "../blobs/preview";
import { DeleteNode, RenameNode } from "./dialogs";
import { ContentForm, MetadataPanel, SmbForm } from "./node_forms";
import { NodeFacts } from "./node_facts";
import { FileOpens } from "./opens";
import { FILE, FileActButton, lacking, pathAddress, PathCrumbs } from "./place";
import { useWatchedFile, type WatchedFile } from "./watched";

const words = texts.files;

type Tab = "properties" | "metadata" | "opens";

export function OneFile({ place }: { readonly place: PathPlace }): JSX.Element {
  const right = lacking("read");
  if (right) return <><PathCrumbs place={place} isDirectory={false} /><Lacks right={right} /></>;
  return <Readable place={place} />;
}

function Readable({ place }: { readonly place: PathPlace }): JSX.Element {
  const watched = useWatchedFile(place);
  const properties = watched.properties.value;
  const error = watched.error.value;
  const isGone = error instanceof ServiceError && error.status === 404;
  return (
    <div class="one-blob">
      <div class="place-head">
        <PathCrumbs place={place} isDirectory={false} />
        {properties && <Acts place={place} properties={properties} watched={watched} />}
      </div>
      {isGone ? <Empty title={words.goneTitle}>{words.gone}</Empty> : <Problem error={error} />}
      {properties && <Parts place={place} properties={properties} watched={watched} />}
    </div>
  );
}

interface PartProps {
  readonly place: PathPlace;
  readonly properties: NodeProperties;
  readonly watched: WatchedFile;
}

function leaseStateOf({ properties, watched }: Omit<PartProps, "place">): string {
  return watched.opens.value?.lease_state ?? properties.leaseState;
}

function readPropertiesOf({ sizeBytes, etag, content }: NodeProperties): ReadProperties {
  return { sizeBytes, etag, encoding: content.encoding, contentType: content.contentType, tier: "" };
}

function Acts({ place, properties, watched }: PartProps): JSX.Element {
  const open = useSignal<"rename" | "delete" | null>(null);
  const close = (): void => { open.value = null; };
  return (
    <div class="actions">
      <Download place={place} properties={readPropertiesOf(properties)} right={lacking("read")} refused={words.downloadNeedsKey} />
      {!place.snapshot && (
        <>
          <LeaseButtons place={place} state={leaseStateOf({ properties, watched })} right={lacking("write")} changed={() => { void watched.read(); }} />
          <FileActButton act="write" text={words.rename} onClick={() => { open.value = "rename"; }} />
          <FileActButton act="delete" kind="danger" text={words.delete} onClick={() => { open.value = "delete"; }} />
        </>
      )}
      {open.value === "rename" && <RenameNode place={place} isDirectory={false} onClose={close} />}
      {open.value === "delete" && <DeleteNode place={place} isDirectory={false} onClose={close} />}
    </div>
  );
}

function Parts({ place, properties, watched }: PartProps): JSX.Element {
  const tabs: readonly (readonly [Tab, string])[] = [
    ["properties", texts.blobs.tabs.properties],
    ["metadata", words.tabs.change],
    ["opens", words.tabs.opens],
  ];
  const tab = tabs.find(([name]) => name === address.value.query["tab"])?.[0] ?? "properties";
  const changed = (): void => { void watched.read(); };
  const lease = { state: leaseStateOf({ properties, watched }), duration: watched.opens.value?.lease_duration ?? properties.leaseDuration };
  const forms = { place, isDirectory: false, properties, changed };
  return (
    <Tabs<Tab>
      label={texts.blobs.parts}
      tabs={tabs}
      chosen={tab}
      onChoose={(one) => { navigate(pathAddress(place, { ...FILE, tab: one === "properties" ? "" : one }), true); }}
    >
      {tab === "properties" && (
        <div class="columns blob-columns">
          <NodeFacts place={place} properties={properties} isDirectory={false} lease={lease} />
          <Preview place={place} properties={readPropertiesOf(properties)} />
        </div>
      )}
      {tab === "metadata" && (
        <div class="columns">
          <div class="stacked">
            <SmbForm {...forms} />
            <MetadataPanel {...forms} />
          </div>
          <ContentForm {...forms} />
        </div>
      )}
      {tab === "opens" && <FileOpens place={place} watched={watched} />}
    </Tabs>
  );
}
