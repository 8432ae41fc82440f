// A link that permits something for some time, signed here with the account's key.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Checkbox, Field } from "../../components/controls";
import { FormDialog } from "../../components/dialog";
import { copyText } from "../../components/parts";
import { ownPortUrl } from "../../protocol/blob/blobs";
import { type BlobPlace, blobPath, type ContainerPlace } from "../../protocol/blob/place";
import { BLOB_RIGHTS, CONTAINER_RIGHTS, makeSas, readDuration, type Right } from "../../protocol/blob/sas";
import { pathOf } from "../../protocol/requests";
import { texts } from "../../texts";

const words = texts.blobs;

export function SasDialog({ place, onClose }: { readonly place: ContainerPlace | BlobPlace; readonly onClose: () => void }): JSX.Element {
  const blob = "blob" in place ? place.blob : undefined;
  const chosen = useSignal<readonly Right[]>(blob === undefined ? ["r", "l"] : ["r"]);
  const validFor = useSignal<string>(words.validForDefault);
  const toggle = (right: Right, isOn: boolean): void => {
    chosen.value = isOn ? [...chosen.value, right] : chosen.value.filter((one) => one !== right);
  };
  const act = async (): Promise<void> => {
    await copyText(await linkOf(place, chosen.value, validFor.value), words.sasCopied);
  };
  return (
    <FormDialog title={words.sasTitle(blob ?? place.container)} onClose={onClose} action={words.copy} act={act}>
      <p class="hint">{words.sasHint}</p>
      <fieldset>
        <legend>{words.sasRights}</legend>
        <div class="rights">
          {(blob === undefined ? CONTAINER_RIGHTS : BLOB_RIGHTS).map((right) => (
            <Checkbox key={right} label={words.rights[right]} checked={chosen.value.includes(right)} onChange={(isOn) => { toggle(right, isOn); }} />
          ))}
        </div>
      </fieldset>
      <Field label={words.validFor} value={validFor.value} hint={words.validForHint} onInput={(value) => { validFor.value = value; }} />
    </FormDialog>
  );
}

/** Return the URL at the Blob service's own port. */
async function linkOf(place: ContainerPlace | BlobPlace, rights: readonly Right[], validFor: string): Promise<string> {
  const { credential, container, account } = place;
  if (credential.kind !== "key") throw new Error(words.needsRight(words.rights.key));
  if (!rights.length) throw new Error(words.noRights);
  const validMs = readDuration(validFor);
  if (validMs === null) throw new Error(words.notATime);
  const blob = "blob" in place ? place.blob : undefined;
  const token = await makeSas({ credential, container, rights, validMs, nowMs: Date.now(), ...(blob === undefined ? {} : { blob }) });
  const path = "blob" in place ? blobPath(place) : pathOf(container);
  return `${ownPortUrl({ account, path })}?${token}`;
}
