// A link that permits something for some time, signed here: with the account's key, or with a key
// that the service gives to who signed in by a token.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button, Checkbox, Field } from "../../components/controls";
import { Dialog, FormDialog } from "../../components/dialog";
import { copyText } from "../../components/parts";
import { ownPortUrl } from "../../protocol/blob/blobs";
import { signedQuery } from "../../protocol/blob/links";
import { type BlobPlace, blobPath, type ContainerPlace } from "../../protocol/blob/place";
import { BLOB_RIGHTS, CONTAINER_RIGHTS, readDuration, type Right } from "../../protocol/blob/sas";
import { pathOf } from "../../protocol/requests";
import { texts } from "../../texts";

const words = texts.blobs;

export interface SasDialogProps {
  readonly place: ContainerPlace | BlobPlace;
  readonly onClose: () => void;
}

export function SasDialog({ place, onClose }: SasDialogProps): JSX.Element {
  const title = words.sasTitle("blob" in place ? place.blob : place.container);
  if (place.credential.kind !== "sas") return <LinkForm title={title} place={place} onClose={onClose} />;
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{texts.delegation.noLink.needs_key}</p>
      <div class="actions"><Button onClick={onClose}>{texts.delegation.close}</Button></div>
    </Dialog>
  );
}

function LinkForm({ title, place, onClose }: SasDialogProps & { readonly title: string }): JSX.Element {
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
    <FormDialog title={title} onClose={onClose} action={words.copy} act={act}>
      <p class="hint">{place.credential.kind === "bearer" ? texts.delegation.hint : words.sasHint}</p>
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
  if (!rights.length) throw new Error(words.noRights);
  const validMs = readDuration(validFor);
  if (validMs === null) throw new Error(words.notATime);
  const signed = await signedQuery(place, rights, validMs);
  if (typeof signed === "string") throw new Error(texts.delegation.noLink[signed]);
  const path = "blob" in place ? blobPath(place) : pathOf(place.container);
  return `${ownPortUrl({ account: place.account, path })}?${signed.query}`;
}
