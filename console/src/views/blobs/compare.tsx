// Two states of a blob side by side: what a read says of each, and the beginning of their texts.

import type { JSX } from "preact";

import { Problem } from "../../components/messages";
import { type BlobProperties, blobProperties } from "../../protocol/blob/blobs";
import { readRange } from "../../protocol/blob/download";
import type { BlobPlace } from "../../protocol/blob/place";
import { useLoaded } from "../../state/loaded";
import { sizeText, utcTime } from "../../state/times";
import { texts } from "../../texts";
import { asText, PREVIEW_BYTES } from "./preview_kinds";

const words = texts.blobs;

export interface CompareProps {
  readonly now: BlobPlace;
  readonly properties: BlobProperties;
  readonly then: BlobPlace;
}

interface Side {
  readonly properties: BlobProperties;
  readonly bytes: Uint8Array;
}

export function Compare({ now, properties, then }: CompareProps): JSX.Element {
  const sides = useLoaded(JSON.stringify(then), async (signal) => {
    const other = await blobProperties(then, signal);
    return [await sideOf(now, properties, signal), await sideOf(then, other, signal)] as const;
  });
  const both = sides.value.value;
  return (
    <>
      <Problem error={sides.error.value} />
      {both && (
        <>
          <p role="status">{verdict(both[0], both[1])}</p>
          <div class="compared">
            <SideBy title={words.compareNow} side={both[0]} />
            <SideBy title={words.compareThen} side={both[1]} />
          </div>
        </>
      )}
    </>
  );
}

async function sideOf(place: BlobPlace, properties: BlobProperties, signal: AbortSignal): Promise<Side> {
  const isReadable = properties.sizeBytes > 0 && !properties.encoding;
  return { properties, bytes: isReadable ? new Uint8Array(await readRange(place, 0, PREVIEW_BYTES, "", signal)) : new Uint8Array(0) };
}

function verdict(now: Side, then: Side): string {
  const isSameSize = now.properties.sizeBytes === then.properties.sizeBytes;
  const isSameStart = now.bytes.length === then.bytes.length && now.bytes.every((byte, at) => byte === then.bytes[at]);
  if (!isSameSize || !isSameStart) return words.compareOther;
  return now.properties.sizeBytes === now.bytes.length ? words.compareSame : words.compareUnread;
}

function SideBy({ title, side }: { readonly title: string; readonly side: Side }): JSX.Element {
  const one = side.properties;
  const text = asText(side.bytes, one.sizeBytes > side.bytes.length);
  const facts = [sizeText(one.sizeBytes), one.contentType, one.modified && utcTime(one.modified), one.tier];
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <p class="muted">{facts.filter(Boolean).join(", ")}</p>
      {one.metadata.map(([name, value]) => <p key={name}><code>{`${name}: ${value}`}</code></p>)}
      {text !== null && <pre tabIndex={0}>{text}</pre>}
    </section>
  );
}
