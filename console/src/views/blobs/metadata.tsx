// A blob's metadata and its tags, as rows that can be changed.

import type { JSX } from "preact";

import { Problem } from "../../components/messages";
import { mustBeAsSeen, PairsForm, type SeenPairs } from "../../components/pairs_form";
import { Panel } from "../../components/parts";
import { type BlobProperties, blobTags, setBlobMetadata, setBlobTags } from "../../protocol/blob/blobs";
import { heldId } from "../../protocol/across/leases";
import type { Pairs } from "../../protocol/shared/headers";
import type { BlobPlace } from "../../protocol/blob/place";
import { useLoaded } from "../../state/loaded";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { lacking, Lacks } from "./place";

const words = texts.blobs;

export interface MetadataProps {
  readonly place: BlobPlace;
  readonly properties: BlobProperties;
  readonly changed: () => void;
}

export function MetadataAndTags({ place, properties, changed }: MetadataProps): JSX.Element {
  const isFixed = place.snapshot !== undefined || place.version !== undefined;
  const saveMetadata = async (pairs: Pairs, seen: SeenPairs): Promise<void> => {
    await setBlobMetadata(place, pairs, seen.etag, heldId(place)).finally(changed);
    say(words.metadataSaved);
  };
  const right = lacking("tags");
  return (
    <div class="columns">
      <Panel title={words.metadata}>
        <p class="hint">{words.metadataHint}</p>
        <PairsForm label={words.metadata} pairs={properties.metadata} etag={properties.etag} right={lacking("write")} isFixed={isFixed} save={saveMetadata} />
      </Panel>
      <Panel title={words.tagsHeading}>
        <p class="hint">{words.tagsHint}</p>
        {right ? <Lacks right={right} /> : <Tags place={place} isFixed={isFixed} changed={changed} />}
      </Panel>
    </div>
  );
}

function Tags({ place, isFixed, changed }: { readonly place: BlobPlace; readonly isFixed: boolean; readonly changed: () => void }): JSX.Element {
  const tags = useLoaded(place.blob, (signal) => blobTags(place, signal));
  const save = async (pairs: Pairs, seen: SeenPairs): Promise<void> => {
    try {
      // Tags have no ETag.
      mustBeAsSeen(seen, await blobTags(place));
      await setBlobTags(place, pairs, heldId(place));
    } finally {
      tags.reload();
      changed();
    }
    say(words.tagsSaved);
  };
  return (
    <>
      <Problem error={tags.error.value} />
      {tags.value.value && <PairsForm label={words.tagsHeading} pairs={tags.value.value} right={lacking("tags")} isFixed={isFixed} save={save} />}
    </>
  );
}
