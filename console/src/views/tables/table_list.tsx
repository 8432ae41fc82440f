// The list of tables, a page at a time.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button, Field } from "../../components/controls";
import { ConfirmByName, FormDialog } from "../../components/dialog";
import { Empty, Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { createTable, deleteTable, listTables, type TableAt, type TablePage } from "../../protocol/tables";
import { addressOf } from "../../state/router";
import { currentSession } from "../../state/session";
import { say } from "../../state/toasts";
import { texts } from "../../texts";

const PAGE_TABLES = 100;
const PREFIX_PAUSE_MS = 250;
const words = texts.tables;

export function TableList({ owner }: { readonly owner: string }): JSX.Element {
  const prefix = useSignal("");
  const marker = useSignal("");
  const page = useSignal<TablePage | null>(null);
  const error = useSignal<unknown>(null);
  const again = useSignal(0);
  const isMaking = useSignal(false);
  const doomed = useSignal<string | null>(null);
  useEffect(() => {
    const end = new AbortController();
    const query = { prefix: prefix.value, marker: marker.value, top: PAGE_TABLES };
    const ask = (): void => {
      listTables(currentSession().credential, owner, query, end.signal)
        .then((found) => { page.value = found; error.value = null; })
        .catch((problem: unknown) => { if (!end.signal.aborted) error.value = problem; });
    };
    const timer = setTimeout(ask, prefix.value ? PREFIX_PAUSE_MS : 0);
    return () => { clearTimeout(timer); end.abort(); };
  }, [owner, prefix.value, marker.value, again.value]);
  const names = page.value?.names ?? [];
  const next = page.value?.next ?? "";
  const changed = (): void => { again.value += 1; };
  return (
    <div class="tables">
      <ViewHead title={words.title} lead={words.lead}>
        <Button kind="primary" onClick={() => { isMaking.value = true; }}>{words.newTable}</Button>
      </ViewHead>
      <div class="toolbar">
        <Field label={words.prefix} type="search" value={prefix.value} onInput={(value) => { prefix.value = value; marker.value = ""; }} code />
      </div>
      <Problem error={error.value} />
      {names.length > 0 && <Names owner={owner} names={names} onDelete={(name) => { doomed.value = name; }} />}
      {page.value && names.length === 0 && (
        <Empty title={prefix.value ? words.noneWithPrefix : words.emptyTitle}>{prefix.value ? words.noneWithPrefixHint : words.empty}</Empty>
      )}
      {(marker.value || next) && (
        <div class="actions">
          <Button disabled={!marker.value} onClick={() => { marker.value = ""; }}>{texts.data.firstPage}</Button>
          <Button disabled={!next} onClick={() => { marker.value = next; }}>{texts.data.nextPage}</Button>
        </div>
      )}
      {isMaking.value && <NewTable owner={owner} onClose={() => { isMaking.value = false; }} onMade={changed} />}
      {doomed.value !== null && <DeleteTable at={{ account: owner, table: doomed.value }} onClose={() => { doomed.value = null; }} onDeleted={changed} />}
    </div>
  );
}

function Names({ owner, names, onDelete }: { readonly owner: string; readonly names: readonly string[]; readonly onDelete: (name: string) => void }): JSX.Element {
  return (
    <div class="table-box listing">
      <table aria-label={words.title}>
        <thead>
          <tr>
            <th scope="col">{words.nameColumn}</th>
            <th scope="col"><span class="minor">{texts.data.acts}</span></th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <td class="name-cell"><a href={addressOf("tables", [owner, name])}>{name}</a></td>
              <td><Button kind="quiet" name={words.deleteOf(name)} onClick={() => { onDelete(name); }}>{words.delete}</Button></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NewTable({ owner, onClose, onMade }: { readonly owner: string; readonly onClose: () => void; readonly onMade: () => void }): JSX.Element {
  const name = useSignal("");
  const act = async (): Promise<void> => {
    const table = name.value.trim();
    await createTable(currentSession().credential, { account: owner, table });
    say(words.made(table));
    onMade();
  };
  return (
    <FormDialog title={words.newTable} onClose={onClose} action={texts.data.create} act={act}>
      <Field label={words.name} value={name.value} onInput={(value) => { name.value = value; }} hint={words.nameHint} required code />
    </FormDialog>
  );
}

export interface DeleteTableProps {
  readonly at: TableAt;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteTable({ at, onClose, onDeleted }: DeleteTableProps): JSX.Element {
  const act = async (): Promise<void> => {
    await deleteTable(currentSession().credential, at);
    say(words.deleted(at.table));
    onDeleted();
  };
  return <ConfirmByName title={words.deleteTitle} risk={words.deleteRisk} name={at.table} onClose={onClose} act={act} />;
}
