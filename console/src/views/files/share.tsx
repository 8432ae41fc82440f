// One share: what is in its root, its settings, its snapshots, who has something in it open.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Tabs } from "../../components/tabs";
import { heldId } from "../../protocol/across/leases";
import { type PathPlace, shareOf } from "../../protocol/files/place";
import { deleteShare, takeShareSnapshot } from "../../protocol/files/shares";
import { address, addressOf, navigate } from "../../state/router";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { DeletePlace } from "../places/place_list";
import { Handles } from "./handles";
import { Listing } from "./listing";
import { FileActButton, PathCrumbs, shareAddress } from "./place";
import { ShareSettings } from "./share_settings";
import { ShareSnapshots } from "./share_snapshots";

const words = texts.files;

type Tab = "files" | "settings" | "snapshots" | "handles";

/** `place`: the root of the share. */
export function OneShare({ place }: { readonly place: PathPlace }): JSX.Element {
  const { tab: asked } = address.value.query;
  const isDeleting = useSignal(false);
  const round = useSignal(0);
  const tabs: (readonly [Tab, string])[] = [
    ["files", words.tabs.files],
    ...(place.snapshot ? [] : [["settings", words.tabs.settings], ["snapshots", words.tabs.snapshots]] as const),
    ["handles", words.tabs.handles],
  ];
  const tab = tabs.find(([name]) => name === asked)?.[0] ?? "files";
  const take = (): void => {
    takeShareSnapshot(place).then((at) => { say(texts.blobs.snapshotTaken(at)); round.value += 1; }, complain);
  };
  return (
    <div class="listing">
      <div class="place-head">
        <PathCrumbs place={place} isDirectory />
        <div class="actions">
          {!place.snapshot && <FileActButton act="snapshotShare" text={texts.blobs.takeSnapshot} onClick={take} />}
          {!place.snapshot && <FileActButton act="deleteShare" kind="danger" text={words.delete} name={words.deleteOf(place.share)} onClick={() => { isDeleting.value = true; }} />}
        </div>
      </div>
      <Tabs<Tab> label={texts.blobs.parts} tabs={tabs} chosen={tab} onChoose={(one) => { navigate(shareAddress(place, { tab: one === "files" ? "" : one }), true); }}>
        {tab === "files" && <Listing place={place} />}
        {tab === "settings" && <ShareSettings place={shareOf(place)} />}
        {tab === "snapshots" && <ShareSnapshots place={shareOf(place)} round={round.value} />}
        {tab === "handles" && <Handles place={place} />}
      </Tabs>
      {isDeleting.value && (
        <DeletePlace
          words={words}
          name={place.share}
          remove={() => deleteShare(place, heldId(shareOf(place)))}
          onClose={() => { isDeleting.value = false; }}
          onDeleted={() => { navigate(addressOf("files", [place.account]), true); }}
        />
      )}
    </div>
  );
}
