// What can be changed of a file or directory: attributes and times, content headers, metadata.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Checkbox, Field } from "../../components/controls";
import { PairsForm } from "../../components/pairs_form";
import { Panel } from "../../components/parts";
import { heldId } from "../../protocol/blob/leases";
import type { Pairs } from "../../protocol/blob/listing";
import { type ContentHeaders, type NodeProperties, setContentHeaders, setNodeMetadata, setSmbProperties } from "../../protocol/files/nodes";
import type { PathPlace } from "../../protocol/files/place";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { attributesOf, SETTABLE, withAttribute } from "./attributes";
import { FileActButton, lacking } from "./place";

const words = texts.files;
const names = { ...texts.blobs.facts, ...texts.files.facts };

export interface NodeFormProps {
  readonly place: PathPlace;
  readonly isDirectory: boolean;
  readonly properties: NodeProperties;
  readonly changed: () => void;
}

/** A file's lease guards what is set; a directory has none. */
function leaseOf({ place, isDirectory }: NodeFormProps): string | undefined {
  return isDirectory ? undefined : heldId(place);
}

export function SmbForm(props: NodeFormProps): JSX.Element {
  const { place, isDirectory, properties, changed } = props;
  const { smb } = properties;
  const attributes = useSignal(smb.attributes);
  const creation = useSignal(smb.creation);
  const lastWrite = useSignal(smb.lastWrite);
  const save = (): void => {
    const values = {
      attributes: attributes.value === smb.attributes ? "" : attributes.value,
      creation: creation.value === smb.creation ? "" : creation.value.trim(),
      lastWrite: lastWrite.value === smb.lastWrite ? "" : lastWrite.value.trim(),
    };
    setSmbProperties(place, isDirectory, values, leaseOf(props)).then(() => { say(words.propertiesSaved); }, complain).finally(changed);
  };
  return (
    <Panel title={words.smbTitle}>
      <form onSubmit={(event) => { event.preventDefault(); save(); }}>
        <fieldset disabled={place.snapshot !== undefined}>
          <legend>{names.attributes}</legend>
          <div class="rights">
            {SETTABLE.map((name) => (
              <Checkbox
                key={name}
                label={name}
                checked={attributesOf(attributes.value).includes(name)}
                onChange={(isSet) => { attributes.value = withAttribute(attributes.value, name, isSet); }}
              />
            ))}
          </div>
          <Field label={names.created} value={creation.value} onInput={(value) => { creation.value = value; }} hint={words.timeHint} code />
          <Field label={names.written} value={lastWrite.value} onInput={(value) => { lastWrite.value = value; }} code />
          {!place.snapshot && <div class="actions"><FileActButton act="write" kind="primary" text={texts.blobs.save} name={words.saveSmb} onClick={save} /></div>}
        </fieldset>
      </form>
    </Panel>
  );
}

const CONTENT: readonly (readonly [keyof ContentHeaders, string])[] = [
  ["contentType", names.contentType],
  ["encoding", names.encoding],
  ["language", names.language],
  ["disposition", names.disposition],
  ["cacheControl", names.cacheControl],
  ["md5", names.md5],
];

/** Of a file. */
export function ContentForm(props: NodeFormProps): JSX.Element {
  const { place, properties, changed } = props;
  const content = useSignal<ContentHeaders>(properties.content);
  const save = (): void => {
    setContentHeaders(place, content.value, leaseOf(props)).then(() => { say(words.propertiesSaved); }, complain).finally(changed);
  };
  return (
    <Panel title={words.contentTitle}>
      <p class="hint">{words.contentHint}</p>
      <form onSubmit={(event) => { event.preventDefault(); save(); }}>
        <fieldset disabled={place.snapshot !== undefined}>
          {CONTENT.map(([key, label]) => (
            <Field key={key} label={label} value={content.value[key]} onInput={(value) => { content.value = { ...content.value, [key]: value }; }} code />
          ))}
          {!place.snapshot && <div class="actions"><FileActButton act="write" kind="primary" text={texts.blobs.save} name={words.saveContent} onClick={save} /></div>}
        </fieldset>
      </form>
    </Panel>
  );
}

export function MetadataPanel(props: NodeFormProps): JSX.Element {
  const { place, isDirectory, properties, changed } = props;
  const save = async (pairs: Pairs): Promise<void> => {
    await setNodeMetadata(place, isDirectory, pairs, leaseOf(props));
    say(texts.blobs.metadataSaved);
    changed();
  };
  return (
    <Panel title={texts.blobs.metadata}>
      <p class="hint">{texts.blobs.metadataHint}</p>
      <PairsForm label={texts.blobs.metadata} pairs={properties.metadata} right={lacking("write")} isFixed={place.snapshot !== undefined} save={save} />
    </Panel>
  );
}
