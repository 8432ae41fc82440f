// Queues: the list with lengths, and the page of one queue.

import type { JSX } from "preact";

import { Empty } from "../../components/messages";
import { onlyName } from "../../protocol/rights";
import { address } from "../../state/router";
import { account, currentSession } from "../../state/session";
import { texts } from "../../texts";
import { lacking } from "../service_view";
import { OneQueue } from "./one_queue";
import { QueueList } from "./queue_list";

const words = texts.queues;

export function Queues(): JSX.Element {
  const { credential } = currentSession();
  const [named, queue] = address.value.names;
  const owner = named ?? account.value;
  const only = onlyName(credential);
  const shown = queue ?? only;
  const lack = lacking({ title: words.title, service: "queue", rights: shown ? "" : "l", credential });
  if (lack) return lack;
  if (!owner) return <Empty title={texts.data.noAccount}>{texts.data.noAccountRemedy}</Empty>;
  if (shown) return <OneQueue key={`${owner}/${shown}`} at={{ account: owner, queue: shown }} isOnly={only !== null} />;
  return <QueueList key={owner} owner={owner} />;
}
