// Tables: the list, and the grid of one table.

import type { JSX } from "preact";

import { Empty } from "../../components/messages";
import { onlyName } from "../../protocol/rights";
import { address } from "../../state/router";
import { account, currentSession } from "../../state/session";
import { texts } from "../../texts";
import { lacking } from "../service_view";
import { OneTable } from "./one_table";
import { TableList } from "./table_list";

const words = texts.tables;

export function Tables(): JSX.Element {
  const { credential } = currentSession();
  const [named, table] = address.value.names;
  const owner = named ?? account.value;
  const only = onlyName(credential);
  const shown = table ?? only;
  const lack = lacking({ title: words.title, service: "table", rights: shown ? "r" : "l", credential });
  if (lack) return lack;
  if (!owner) return <Empty title={texts.data.noAccount}>{texts.data.noAccountRemedy}</Empty>;
  if (shown) return <OneTable key={`${owner}/${shown}`} at={{ account: owner, table: shown }} isOnly={only !== null} />;
  return <TableList key={owner} owner={owner} />;
}
