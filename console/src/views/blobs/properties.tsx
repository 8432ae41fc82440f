// What a blob is: its properties, lease, protection, and its access tier, which can be set.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";

import { Select } from "../../components/controls";
import { LeaseState } from "../../components/lease";
import { Facts, Panel, Time } from "../../components/parts";
import { type BlobProperties, setBlobTier } from "../../protocol/blob/blobs";
import { heldId } from "../../protocol/across/leases";
import type { BlobPlace } from "../../protocol/blob/place";
import { countText, sizeText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { ActButton } from "./place";

const words = texts.blobs;
const names = words.facts;
const TIERS = ["Hot", "Cool", "Cold", "Archive"];

export interface PropertyFactsProps {
  readonly place: BlobPlace;
  readonly properties: BlobProperties;
  readonly changed: () => void;
}

export function PropertyFacts({ place, properties, changed }: PropertyFactsProps): JSX.Element {
  return (
    <Panel title={words.tabs.properties}>
      <Facts rows={rowsOf(place, properties)} />
      {properties.type === "BlockBlob" && <Tier key={properties.tier} place={place} tier={properties.tier} changed={changed} />}
    </Panel>
  );
}

function rowsOf(place: BlobPlace, one: BlobProperties): (readonly [string, ComponentChildren])[] {
  const isState = place.snapshot !== undefined || place.version !== undefined;
  const optional: (readonly [string, ComponentChildren])[] = [
    [names.encoding, one.encoding],
    [names.language, one.language],
    [names.disposition, one.disposition],
    [names.cacheControl, one.cacheControl],
    [names.md5, one.md5 && <code>{one.md5}</code>],
    [names.version, one.version && <code>{one.version}</code>],
    [names.tier, one.tier],
    [names.sealed, one.isSealed && words.yes],
    [names.committedBlocks, one.committedBlocks],
    [names.sequenceNumber, one.sequenceNumber],
    [names.copy, one.copyStatus && `${one.copySource.split("?")[0] ?? ""} (${one.copyStatus})`],
  ];
  return [
    [names.type, words.types[one.type as keyof typeof words.types]],
    [names.size, <span title={`${countText(one.sizeBytes)} B`}>{sizeText(one.sizeBytes)}</span>],
    [names.contentType, one.contentType],
    ...(isState ? [] : [[names.lease, <LeaseState place={place} state={one.leaseState} duration={one.leaseDuration} />] as const]),
    [names.modified, one.modified && <Time at={one.modified} />],
    [names.created, one.created && <Time at={one.created} />],
    [names.etag, <code>{one.etag}</code>],
    ...optional.filter(([, value]) => value),
    [names.immutability, <Immutability one={one} />],
  ];
}

function Immutability({ one }: { readonly one: BlobProperties }): JSX.Element {
  if (!one.lockedUntil && !one.hasLegalHold) return <>{words.none}</>;
  return (
    <>
      {one.lockedUntil && <>{words.lockedUntil(one.lockMode)} <Time at={one.lockedUntil} /> </>}
      {one.hasLegalHold && <span class="tag first">{words.legalHold}</span>}
    </>
  );
}

function Tier({ place, tier, changed }: { readonly place: BlobPlace; readonly tier: string; readonly changed: () => void }): JSX.Element {
  const chosen = useSignal(tier);
  const set = (): void => {
    setBlobTier(place, chosen.value, heldId(place)).then(() => { say(words.tierSet); }, complain).finally(changed);
  };
  const options = [...new Set([...(tier ? [tier] : []), ...TIERS])].map((one) => [one, one] as const);
  return (
    <div class="with-button">
      <Select label={words.tier} value={chosen.value} options={options} onChange={(value) => { chosen.value = value; }} />
      <ActButton act="write" text={words.setTier} disabled={chosen.value === tier} onClick={set} />
    </div>
  );
}
