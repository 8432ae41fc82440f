// The list of tables.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { createTable, deleteTable, listTables } from "../../protocol/tables";
import { addressOf } from "../../state/router";
import { currentSession } from "../../state/session";
import { texts } from "../../texts";
import { PlaceList, type PlacePage } from "../places/place_list";
import { lackingPlace } from "../places/rights";

const PAGE_TABLES = 100;
const words = texts.tables;

export function TableList({ owner }: { readonly owner: string }): JSX.Element {
  const page = useSignal<PlacePage<string> | null>(null);
  return (
    <PlaceList<string>
      words={words}
      page={page}
      list={(query, signal) => listTables(currentSession().credential, owner, { ...query, top: PAGE_TABLES }, signal)}
      nameOf={(name) => name}
      hrefOf={(name) => addressOf("tables", [owner, name])}
      make={async (table) => {
        await createTable(currentSession().credential, { account: owner, table });
        return words.made(table);
      }}
      lacks={{ make: lackingPlace("make"), remove: lackingPlace("remove") }}
      remove={(table) => removeTable(owner, table)}
    />
  );
}

export function removeTable(account: string, table: string): Promise<void> {
  return deleteTable(currentSession().credential, { account, table });
}
