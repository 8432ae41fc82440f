// The page of one table: its filter, its columns, the grid, and what one does with entities.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import { Button } from "../../components/controls";
import { Empty, Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { RightButton } from "../../components/rights";
import type { Entity } from "../../protocol/entities";
import type { TableAt } from "../../protocol/tables";
import { address, addressOf, navigate } from "../../state/router";
import { countText } from "../../state/times";
import { texts } from "../../texts";
import { DeletePlace } from "../places/place_list";
import { lackingPlace } from "../places/rights";
import { Crumbs } from "../service_view";
import { AddEntity } from "./add_entity";
import { propertyColumns } from "./columns";
import { ColumnChoice } from "./column_choice";
import { DeleteEntity } from "./delete_entity";
import { EntityGrid } from "./entity_grid";
import { ExportDialog } from "./export_dialog";
import { FilterBar } from "./filter_bar";
import { ImportDialog } from "./import_dialog";
import { PAGE_ENTITIES, type Rows, rowsOf } from "./rows";
import { removeTable } from "./table_list";

const words = texts.tables;

type Asked = "add" | "import" | "export" | "delete table" | Entity | null;

export function OneTable({ at, isOnly }: { readonly at: TableAt; readonly isOnly: boolean }): JSX.Element {
  const filter = address.value.query["filter"] ?? "";
  const chosen = address.value.query["columns"];
  const rows = useMemo(() => rowsOf(at, filter), [filter]);
  const asked = useSignal<Asked>(null);
  useEffect(() => {
    rows.load();
    return rows.stop;
  }, [rows]);
  const entities = rows.entities.value;
  const all = useMemo(() => propertyColumns(entities), [entities]);
  const names = chosen === undefined ? null : chosen.split(",");
  const shown = names ? all.filter((one) => names.includes(one.name)) : all;
  const close = (): void => { asked.value = null; };
  const show = (query: Readonly<Record<string, string>>): void => {
    navigate(addressOf("tables", [at.account, at.table], { filter, columns: chosen ?? "", ...query }));
  };
  return (
    <div class="tables one-table">
      <ViewHead title={words.title}>
        <RightButton right={lackingPlace("addEntity")} kind="primary" text={words.addEntity} onClick={() => { asked.value = "add"; }} />
        <RightButton right={lackingPlace("addEntity")} text={words.import} onClick={() => { asked.value = "import"; }} />
        <Button onClick={() => { asked.value = "export"; }}>{words.export}</Button>
        <RightButton right={lackingPlace("remove")} kind="danger" text={words.deleteOf(at.table)} onClick={() => { asked.value = "delete table"; }} />
      </ViewHead>
      {isOnly ? <h2><code>{at.table}</code></h2> : <Crumbs view="tables" all={words.all} account={at.account} name={at.table} />}
      <FilterBar key={filter} filter={filter} columns={all} onApply={(text) => { if (text === filter) rows.load(); else show({ filter: text }); }}>
        <ColumnChoice columns={all} chosen={names} onChoose={(list) => { show({ columns: list === null ? "" : list.join(",") || "-" }); }} />
      </FilterBar>
      <Problem error={rows.error.value} />
      {entities.length > 0 && <EntityGrid key={`${filter} ${rows.before.value}`} at={at} rows={rows} columns={shown} onDelete={(entity) => { asked.value = entity; }} />}
      {rows.isRead.value && entities.length === 0 && !rows.next.value && (
        <Empty title={filter ? words.noneMatch : words.noEntities}>{filter ? words.noneMatchHint : words.noEntitiesHint}</Empty>
      )}
      <Pages rows={rows} />
      {asked.value === "add" && <AddEntity at={at} onClose={close} onAdded={rows.load} />}
      {asked.value === "import" && <ImportDialog at={at} onClose={close} onWritten={rows.load} />}
      {asked.value === "export" && <ExportDialog at={at} filter={filter} onClose={close} />}
      {asked.value === "delete table" && (
        <DeletePlace words={words} name={at.table} remove={(table) => removeTable(at.account, table)} onClose={close} onDeleted={() => { navigate(addressOf("tables", [at.account]), true); }} />
      )}
      {asked.value !== null && typeof asked.value === "object" && <DeleteEntity at={at} entity={asked.value} rows={rows} onClose={close} />}
    </div>
  );
}

function Pages({ rows }: { readonly rows: Rows }): JSX.Element | null {
  const count = rows.entities.value.length;
  if (!rows.isRead.value) return null;
  const first = rows.before.value * PAGE_ENTITIES + 1;
  return (
    <div class="pages">
      <span class="muted" role="status">{count ? words.range(countText(first), countText(first + count - 1)) : ""}</span>
      <span class="actions">
        <Button disabled={rows.before.value === 0} onClick={rows.showPrevious}>{texts.data.previousPage}</Button>
        <Button disabled={rows.next.value === null} onClick={rows.showNext}>{texts.data.nextPage}</Button>
      </span>
    </div>
  );
}
