// A share's quota and use, its lease and its metadata.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Field } from "../../components/controls";
import { LeaseButtons, LeaseState } from "../../components/lease";
import { Problem } from "../../components/messages";
import { mustBeAsSeen, PairsForm, type SeenPairs } from "../../components/pairs_form";
import { Facts, Panel, Time } from "../../components/parts";
import { Lacks } from "../../components/rights";
import { heldId } from "../../protocol/across/leases";
import type { SharePlace } from "../../protocol/files/place";
import { setQuota, setShareMetadata, type ShareProperties, shareProperties, shareUsage } from "../../protocol/files/shares";
import { repeat } from "../../state/live";
import { useLoaded } from "../../state/loaded";
import { countText, sizeText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { FileActButton, lacking } from "./place";
import { readQuota } from "./quota";

const words = texts.files;
const names = texts.blobs.facts;
const LIVE_MS = 1500;

export function ShareSettings({ place }: { readonly place: SharePlace }): JSX.Element {
  const right = lacking("readShare");
  return right ? <Lacks right={right} /> : <Settings place={place} />;
}

function Settings({ place }: { readonly place: SharePlace }): JSX.Element {
  const properties = useSignal<ShareProperties | null>(null);
  const error = useSignal<unknown>(null);
  const read = async (signal?: AbortSignal): Promise<void> => {
    properties.value = await shareProperties(place, signal);
    error.value = null;
  };
  useEffect(() => repeat(read, LIVE_MS, (problem) => { error.value = problem; }), []);
  const changed = (): void => { read().catch(complain); };
  const shown = properties.value;
  const saveMetadata = async (pairs: ShareProperties["metadata"], seen: SeenPairs): Promise<void> => {
    try {
      // The File service does not look at If-Match.
      mustBeAsSeen(seen, (await shareProperties(place)).metadata);
      await setShareMetadata(place, pairs, heldId(place));
    } finally {
      changed();
    }
    say(texts.blobs.metadataSaved);
  };
  return (
    <div class="columns">
      <Panel title={words.tabs.settings}>
        <Problem error={error.value} />
        {shown && (
          <>
            <Facts
              rows={[
                [words.quotaColumn, words.gib(countText(shown.quotaGib))],
                [words.usage, <Usage place={place} etag={shown.etag} />],
                [names.lease, <LeaseState place={place} state={shown.leaseState} duration={shown.leaseDuration} />],
                [names.tier, shown.tier],
                [names.modified, shown.modified && <Time at={shown.modified} />],
                [names.etag, <code>{shown.etag}</code>],
              ]}
            />
            <div class="actions">
              <LeaseButtons place={place} state={shown.leaseState} right={lacking("leaseShare")} changed={changed} />
            </div>
            <Quota key={shown.quotaGib} place={place} quotaGib={shown.quotaGib} changed={changed} />
          </>
        )}
      </Panel>
      <Panel title={texts.blobs.metadata}>
        <p class="hint">{texts.blobs.metadataHint}</p>
        {shown && <PairsForm label={texts.blobs.metadata} pairs={shown.metadata} right={lacking("writeShare")} isFixed={false} save={saveMetadata} />}
      </Panel>
    </div>
  );
}

function Usage({ place, etag }: { readonly place: SharePlace; readonly etag: string }): JSX.Element {
  const usage = useLoaded(etag, (signal) => shareUsage(place, signal));
  return <>{usage.value.value === null ? texts.data.unknown : sizeText(usage.value.value)}</>;
}

function Quota({ place, quotaGib, changed }: { readonly place: SharePlace; readonly quotaGib: number; readonly changed: () => void }): JSX.Element {
  const typed = useSignal(String(quotaGib));
  const set = async (): Promise<void> => {
    await setQuota(place, readQuota(typed.value), heldId(place));
    say(words.quotaSet);
  };
  return (
    <form class="with-button" onSubmit={(event) => { event.preventDefault(); set().catch(complain).finally(changed); }}>
      <Field label={words.quota} value={typed.value} onInput={(value) => { typed.value = value; }} />
      <FileActButton act="writeShare" text={words.setQuota} onClick={() => { set().catch(complain).finally(changed); }} />
    </form>
  );
}
