// Deletes an entity, if it is still as it was shown.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Field } from "../../components/controls";
import { FormDialog } from "../../components/dialog";
import type { Entity } from "../../protocol/entities";
import { deleteEntity, getEntity, isStale, type TableAt } from "../../protocol/tables";
import { currentSession } from "../../state/session";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import type { Rows } from "./rows";

const words = texts.tables;

export interface DeleteEntityProps {
  readonly at: TableAt;
  readonly entity: Entity;
  readonly rows: Rows;
  readonly onClose: () => void;
}

export function DeleteEntity({ at, entity, rows, onClose }: DeleteEntityProps): JSX.Element {
  const typed = useSignal("");
  const { partitionKey, rowKey } = entity;
  const both = `${partitionKey}/${rowKey}`;
  const name = rowKey || both;
  const act = async (): Promise<void> => {
    const { credential } = currentSession();
    try {
      await deleteEntity(credential, at, entity, entity.etag);
    } catch (error) {
      if (isStale(error)) rows.put(entity, await getEntity(credential, at, entity));
      throw isStale(error) ? new Error(words.deleteStale) : error;
    }
    rows.put(entity, null);
    say(words.entityDeleted(name));
  };
  return (
    <FormDialog
      title={words.deleteEntityTitle}
      onClose={onClose}
      action={texts.dialogs.confirm}
      kind="danger"
      disabled={typed.value !== name && typed.value !== both}
      act={act}
    >
      <p>{words.deleteEntityRisk(partitionKey)}</p>
      <p class="asked-name"><code>{name}</code></p>
      <Field label={texts.dialogs.typeTheName} value={typed.value} onInput={(value) => { typed.value = value; }} code />
    </FormDialog>
  );
}
