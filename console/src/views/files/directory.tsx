// One directory below a share's root: what is in it, its properties, who has something in it open.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Problem } from "../../components/messages";
import { Lacks } from "../../components/rights";
import { Tabs } from "../../components/tabs";
import { directoryProperties } from "../../protocol/files/directories";
import type { PathPlace } from "../../protocol/files/place";
import { useLoaded } from "../../state/loaded";
import { address, navigate } from "../../state/router";
import { texts } from "../../texts";
import { DeleteNode, RenameNode } from "./dialogs";
import { Handles } from "./handles";
import { Listing } from "./listing";
import { MetadataPanel, SmbForm } from "./node_forms";
import { NodeFacts } from "./node_facts";
import { FileActButton, lacking, pathAddress, PathCrumbs } from "./place";

const words = texts.files;

type Tab = "files" | "properties" | "handles";

export function OneDirectory({ place }: { readonly place: PathPlace }): JSX.Element {
  const open = useSignal<"rename" | "delete" | null>(null);
  const close = (): void => { open.value = null; };
  const tabs: readonly (readonly [Tab, string])[] = [
    ["files", words.tabs.files],
    ["properties", texts.blobs.tabs.properties],
    ["handles", words.tabs.handles],
  ];
  const tab = tabs.find(([name]) => name === address.value.query["tab"])?.[0] ?? "files";
  return (
    <div class="listing">
      <div class="place-head">
        <PathCrumbs place={place} isDirectory />
        {!place.snapshot && (
          <div class="actions">
            <FileActButton act="write" text={words.rename} onClick={() => { open.value = "rename"; }} />
            <FileActButton act="delete" kind="danger" text={words.delete} onClick={() => { open.value = "delete"; }} />
          </div>
        )}
      </div>
      <Tabs<Tab> label={texts.blobs.parts} tabs={tabs} chosen={tab} onChoose={(one) => { navigate(pathAddress(place, { tab: one === "files" ? "" : one }), true); }}>
        {tab === "files" && <Listing place={place} />}
        {tab === "properties" && <Properties place={place} />}
        {tab === "handles" && <Handles place={place} />}
      </Tabs>
      {open.value === "rename" && <RenameNode place={place} isDirectory onClose={close} />}
      {open.value === "delete" && <DeleteNode place={place} isDirectory onClose={close} />}
    </div>
  );
}

function Properties({ place }: { readonly place: PathPlace }): JSX.Element {
  const right = lacking("read");
  return right ? <Lacks right={right} /> : <Read place={place} />;
}

function Read({ place }: { readonly place: PathPlace }): JSX.Element {
  const read = useLoaded("", (signal) => directoryProperties(place, signal));
  const properties = read.value.value;
  if (!properties) return <Problem error={read.error.value} />;
  const forms = { place, isDirectory: true, properties, changed: read.reload };
  return (
    <div class="columns">
      <NodeFacts place={place} properties={properties} isDirectory />
      <div class="stacked">
        <Problem error={read.error.value} />
        <SmbForm {...forms} />
        <MetadataPanel {...forms} />
      </div>
    </div>
  );
}
