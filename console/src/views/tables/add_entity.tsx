// Adds an entity: its keys, and any number of typed properties.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button, Field, Select } from "../../components/controls";
import { FormDialog } from "../../components/dialog";
import { EDM_TYPES, type EdmType, type TypedValue, typeNamed } from "../../protocol/entities";
import { insertEntity, type TableAt } from "../../protocol/tables";
import { currentSession } from "../../state/session";
import { say } from "../../state/toasts";
import { texts } from "../../texts";

const words = texts.tables;

interface Line {
  readonly number: number;
  readonly name: string;
  readonly type: EdmType;
  readonly text: string;
}

export interface AddEntityProps {
  readonly at: TableAt;
  readonly onClose: () => void;
  readonly onAdded: () => void;
}

export function AddEntity({ at, onClose, onAdded }: AddEntityProps): JSX.Element {
  const partitionKey = useSignal("");
  const rowKey = useSignal("");
  const lines = useSignal<readonly Line[]>([]);
  const last = useSignal(0);
  const act = async (): Promise<void> => {
    const keys = { partitionKey: partitionKey.value, rowKey: rowKey.value };
    await insertEntity(currentSession().credential, at, { ...keys, properties: propertiesOf(lines.value) });
    say(words.added(rowKey.value));
    onAdded();
  };
  const more = (): void => {
    last.value += 1;
    lines.value = [...lines.value, { number: last.value, name: "", type: "String", text: "" }];
  };
  const change = (number: number, part: Partial<Line>): void => {
    lines.value = lines.value.map((one) => (one.number === number ? { ...one, ...part } : one));
  };
  return (
    <FormDialog title={words.addEntity} onClose={onClose} action={words.add} act={act} wide={lines.value.length > 0}>
      <div class="inline-fields">
        <Field label={words.partitionKey} value={partitionKey.value} onInput={(value) => { partitionKey.value = value; }} code />
        <Field label={words.rowKey} value={rowKey.value} onInput={(value) => { rowKey.value = value; }} code />
      </div>
      {lines.value.map((one) => (
        <fieldset key={one.number} class="property-line">
          <Field label={words.propertyName} value={one.name} onInput={(name) => { change(one.number, { name }); }} required code />
          <Select label={words.type} value={one.type} options={EDM_TYPES.map((type) => [type, type])} onChange={(type) => { change(one.number, { type: typeNamed(type) }); }} />
          <Field label={words.value} value={one.text} onInput={(text) => { change(one.number, { text }); }} code />
          <Button kind="quiet" name={words.dropProperty(one.name)} onClick={() => { lines.value = lines.value.filter((other) => other !== one); }}>{words.drop}</Button>
        </fieldset>
      ))}
      <div><Button onClick={more}>{words.newProperty}</Button></div>
    </FormDialog>
  );
}

function propertiesOf(lines: readonly Line[]): ReadonlyMap<string, TypedValue> {
  const properties = new Map<string, TypedValue>();
  for (const { name, type, text } of lines) {
    if (properties.has(name)) throw new Error(words.twice(name));
    properties.set(name, { type, text });
  }
  return properties;
}
