// Coordination: the records of this server's containers and of further stores, each in a panel.

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import type { ContainerRecords, Coordination as Document, OtherStore, StoreRecords } from "../../api/documents";
import { Empty, Problem } from "../../components/messages";
import { CopyButton, Panel, ViewHead } from "../../components/parts";
import { address, addressOf } from "../../state/router";
import { account, server } from "../../state/session";
import { texts } from "../../texts";
import { Records } from "./records";
import { type Watched, watchedOf } from "./watched";

const words = texts.coordination;

export function Coordination(): JSX.Element {
  const container = address.value.names[0];
  const after = address.value.query["after"] ?? "";
  const watched = useWatched<Document>(container, undefined, after);
  const document = watched.document.value;
  return (
    <div class="coordination">
      <ViewHead title={words.title} lead={words.lead}>
        {container && <a class="button" href={addressOf("coordination")}>{words.allContainers}</a>}
      </ViewHead>
      <Problem error={watched.error.value} />
      {document && document.containers.length === 0 && <NothingYet />}
      {document?.containers.map((one) => (
        <ContainerPanel key={one.container} one={one} receivedMs={watched.receivedMs.value} after={container ? after : ""} />
      ))}
      {document?.has_more && <p class="muted">{words.moreContainers}</p>}
      {!container && document?.stores.map((store) => <StorePanel key={store.name} store={store} />)}
    </div>
  );
}

interface ContainerPanelProps {
  readonly one: ContainerRecords;
  readonly receivedMs: number;
  readonly after: string;
}

function ContainerPanel({ one, receivedMs, after }: ContainerPanelProps): JSX.Element {
  const next = one.records.next_after;
  const toPage = (from: string): string => addressOf("coordination", [one.container], { after: from });
  return (
    <Panel title={words.containerHeading(one.container)} class="place">
      <Records records={one.records} place={{ container: one.container }} mayAct={one.may_act} receivedMs={receivedMs} />
      {(after || next) && (
        <div class="actions">
          {after && <a class="button" href={toPage("")}>{words.firstPage}</a>}
          {next && <a class="button" href={toPage(next)}>{words.nextPage}</a>}
        </div>
      )}
    </Panel>
  );
}

/** A further store asks by itself, so that a slow one delays only its own panel. */
function StorePanel({ store }: { readonly store: OtherStore }): JSX.Element {
  const watched = useWatched<StoreRecords>(undefined, store.name, "");
  const document = watched.document.value;
  return (
    <Panel title={words.otherHeading(store.name)} actions={<code class="muted">{store.url}</code>} class="place">
      <Problem error={watched.error.value} />
      {document && !watched.error.value && (
        <Records records={document.records} place={{ store: store.name }} mayAct={store.may_act} receivedMs={watched.receivedMs.value} />
      )}
    </Panel>
  );
}

function useWatched<One extends { readonly change: string }>(
  container: string | undefined,
  store: string | undefined,
  after: string,
): Watched<One> {
  const watched = useMemo(
    () => watchedOf<One>({ container, store, after: after || undefined }),
    [container, store, after],
  );
  useEffect(() => watched.run(), [watched]);
  return watched;
}

function NothingYet(): JSX.Element {
  const blob = server.value?.services.find((one) => one.name === "blob");
  const command = `strongroom gate go-live wait --store ${blob?.url ?? ""}/${account.value}/locks`;
  return (
    <Empty title={words.emptyTitle}>
      <p>{words.empty}</p>
      <p class="first-command"><code>{command}</code></p>
      <CopyButton name={words.copyCommand} text={() => command} />
    </Empty>
  );
}
