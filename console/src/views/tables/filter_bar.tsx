// The filter of the grid: $filter as text, or one condition after another by a form.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";

import { Button, Field, Select } from "../../components/controls";
import { Alert } from "../../components/messages";
import { EDM_TYPES, type EdmType, typeNamed } from "../../protocol/entities";
import { OPERATORS, withCondition } from "../../protocol/filter_text";
import { texts } from "../../texts";
import { KEY_COLUMNS, type PropertyColumn } from "./columns";

const words = texts.tables;

export interface FilterBarProps {
  readonly filter: string;
  readonly columns: readonly PropertyColumn[];
  readonly onApply: (filter: string) => void;
  readonly children: ComponentChildren;
}

export function FilterBar({ filter, columns, onApply, children }: FilterBarProps): JSX.Element {
  const typed = useSignal(filter);
  const submit = (event: Event): void => {
    event.preventDefault();
    onApply(typed.value.trim());
  };
  return (
    <>
      <form class="filter-bar" onSubmit={submit}>
        <Field label={words.filter} type="search" value={typed.value} hint={words.filterHint} onInput={(value) => { typed.value = value; }} code />
        <Button type="submit">{words.apply}</Button>
      </form>
      <div class="choices">
        <details>
          <summary>{words.conditionTitle}</summary>
          <ConditionForm columns={columns} filter={typed.value} onMade={(text) => { typed.value = text; onApply(text); }} />
        </details>
        {children}
      </div>
    </>
  );
}

interface ConditionFormProps {
  readonly columns: readonly PropertyColumn[];
  readonly filter: string;
  readonly onMade: (filter: string) => void;
}

function ConditionForm({ columns, filter, onMade }: ConditionFormProps): JSX.Element {
  const name = useSignal("PartitionKey");
  const type = useSignal<EdmType>("String");
  const operator = useSignal<string>("eq");
  const value = useSignal("");
  const error = useSignal<unknown>(null);
  const choose = (chosen: string): void => {
    name.value = chosen;
    type.value = typeOf(chosen, columns);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    error.value = null;
    try {
      onMade(withCondition(filter, name.value, operator.value, type.value, value.value));
    } catch (problem) {
      error.value = problem;
    }
  };
  const names = [...KEY_COLUMNS, ...columns.map((one) => one.name)];
  return (
    <form class="inline-fields" onSubmit={submit}>
      <Select label={words.property} value={name.value} options={names.map((one) => [one, one])} onChange={choose} />
      <Select label={words.operator} value={operator.value} options={OPERATORS.map((one) => [one, words.operators[one]])} onChange={(one) => { operator.value = one; }} />
      <Field label={words.value} value={value.value} onInput={(one) => { value.value = one; }} code />
      <Select label={words.type} value={type.value} options={EDM_TYPES.map((one) => [one, one])} onChange={(one) => { type.value = typeNamed(one); }} />
      <Button type="submit">{words.appendCondition}</Button>
      <Alert error={error.value} />
    </form>
  );
}

function typeOf(name: string, columns: readonly PropertyColumn[]): EdmType {
  if (name === "Timestamp") return "DateTime";
  return columns.find((one) => one.name === name)?.type ?? "String";
}
