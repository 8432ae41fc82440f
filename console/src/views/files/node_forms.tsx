// What can be changed of a file or directory: attributes and times, content headers, metadata.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Checkbox, Field } from "../../components/controls";
import { mustBeAsSeen, PairsForm, type SeenPairs } from "../../components/pairs_form";
import { Panel } from "../../components/parts";
import { heldId } from "../../protocol/across/leases";
import type { Pairs } from "../../protocol/shared/headers";
import { directoryProperties } from "../../protocol/files/directories";
import { type ContentHeaders, fileProperties, type NodeProperties, type SmbProperties, setContentHeaders, setNodeMetadata, setSmbProperties } from "../../protocol/files/nodes";
import type { PathPlace } from "../../protocol/files/place";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { attributesOf, SETTABLE, withAttribute } from "./attributes";
import { FileActButton, lacking } from "./place";

const words = texts.files;
const names = { ...texts.blobs.facts, ...texts.files.facts };

type SmbValues = Pick<SmbProperties, "attributes" | "creation" | "lastWrite">;

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
  // What a person has not touched follows the file, and is not sent.
  const draft = useSignal<Partial<SmbValues>>({});
  const shown = { ...properties.smb, ...draft.value };
  const set = (values: Partial<SmbValues>): void => { draft.value = { ...draft.value, ...values }; };
  const save = (): void => {
    const { attributes = "", creation = "", lastWrite = "" } = draft.value;
    const values = { attributes, creation: creation.trim(), lastWrite: lastWrite.trim() };
    const saved = (): void => { draft.value = {}; say(words.propertiesSaved); };
    setSmbProperties(place, isDirectory, values, leaseOf(props)).then(saved, complain).finally(changed);
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
                checked={attributesOf(shown.attributes).includes(name)}
                onChange={(isSet) => { set({ attributes: withAttribute(shown.attributes, name, isSet) }); }}
              />
            ))}
          </div>
          <Field label={names.created} value={shown.creation} onInput={(value) => { set({ creation: value }); }} hint={words.timeHint} code />
          <Field label={names.written} value={shown.lastWrite} onInput={(value) => { set({ lastWrite: value }); }} code />
          {!place.snapshot && <div class="actions"><FileActButton act="write" type="submit" kind="primary" text={texts.blobs.save} name={words.saveSmb} /></div>}
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
  const draft = useSignal<Partial<ContentHeaders>>({});
  const shown = { ...properties.content, ...draft.value };
  const save = (): void => {
    const saved = (): void => { draft.value = {}; say(words.propertiesSaved); };
    setContentHeaders(place, shown, leaseOf(props)).then(saved, complain).finally(changed);
  };
  return (
    <Panel title={words.contentTitle}>
      <p class="hint">{words.contentHint}</p>
      <form onSubmit={(event) => { event.preventDefault(); save(); }}>
        <fieldset disabled={place.snapshot !== undefined}>
          {CONTENT.map(([key, label]) => (
            <Field key={key} label={label} value={shown[key]} onInput={(value) => { draft.value = { ...draft.value, [key]: value }; }} code />
          ))}
          {!place.snapshot && <div class="actions"><FileActButton act="write" type="submit" kind="primary" text={texts.blobs.save} name={words.saveContent} /></div>}
        </fieldset>
      </form>
    </Panel>
  );
}

export function MetadataPanel(props: NodeFormProps): JSX.Element {
  const { place, isDirectory, properties, changed } = props;
  const save = async (pairs: Pairs, seen: SeenPairs): Promise<void> => {
    try {
      // The File service does not look at If-Match.
      mustBeAsSeen(seen, (await (isDirectory ? directoryProperties : fileProperties)(place)).metadata);
      await setNodeMetadata(place, isDirectory, pairs, leaseOf(props));
    } finally {
      changed();
    }
    say(texts.blobs.metadataSaved);
  };
  return (
    <Panel title={texts.blobs.metadata}>
      <p class="hint">{texts.blobs.metadataHint}</p>
      <PairsForm label={texts.blobs.metadata} pairs={properties.metadata} right={lacking("write")} isFixed={place.snapshot !== undefined} save={save} />
    </Panel>
  );
}
