// Who has something open over SMB, in a share or below a directory, read again while it is shown.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Empty, Problem } from "../../components/messages";
import { Panel, Time } from "../../components/parts";
import { Lacks } from "../../components/rights";
import { closeHandle, type HandleList, type HandleRow, listHandles } from "../../protocol/files/handles";
import { namesOf, type PathPlace } from "../../protocol/files/place";
import { repeat } from "../../state/live";
import { countText } from "../../state/times";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { FileActButton, lacking, pathAddress } from "./place";

const words = texts.files;
const LIVE_MS = 2000;

/** `place`: a directory. */
export function Handles({ place }: { readonly place: PathPlace }): JSX.Element {
  const right = lacking("read");
  return right ? <Lacks right={right} /> : <Listed place={place} />;
}

function Listed({ place }: { readonly place: PathPlace }): JSX.Element {
  const found = useSignal<HandleList | null>(null);
  const error = useSignal<unknown>(null);
  const read = async (signal?: AbortSignal): Promise<void> => {
    found.value = await listHandles(place, true, signal);
    error.value = null;
  };
  useEffect(() => repeat(read, LIVE_MS, (problem) => { error.value = problem; }), []);
  const rows = found.value?.rows ?? [];
  return (
    <Panel title={words.handlesTitle}>
      <p class="hint">{words.handlesHint}</p>
      <Problem error={error.value} />
      {found.value && rows.length === 0 && <Empty title={words.noHandles}>{words.noHandlesHint}</Empty>}
      {rows.length > 0 && <HandleItems label={words.handlesTitle} place={place} rows={rows} closed={() => { read().catch(complain); }} isNamed />}
      {found.value?.isMore && <p class="muted">{words.moreHandles(countText(rows.length))}</p>}
    </Panel>
  );
}

export interface HandleItemsProps {
  readonly label: string;
  readonly place: PathPlace;
  readonly rows: readonly HandleRow[];
  readonly closed: () => void;
  /** Whether each says what it has open, for handles of more than one file. */
  readonly isNamed?: boolean;
}

/** Handles as REST tells of them. */
export function HandleItems({ label, place, rows, closed, isNamed = false }: HandleItemsProps): JSX.Element {
  return (
    <ul class="things" aria-label={label}>
      {rows.map((row) => {
        const at = { ...place, path: namesOf(row.path) };
        return (
          <li key={row.id} class="thing open">
            <div class="thing-head">
              <strong class="thing-name">{isNamed ? <a href={pathAddress(at)}>{row.path || "/"}</a> : row.client}</strong>
              <span class="actions"><CloseHandle place={at} id={row.id} closed={closed} /></span>
            </div>
            <dl class="open-facts">
              {isNamed && <Fact name={words.openColumns.client}>{row.client}</Fact>}
              <Fact name={words.openColumns.access}>{row.access.join(", ") || words.attributesOnly}</Fact>
              {row.opened && <Fact name={words.openColumns.opened}><Time at={row.opened} /></Fact>}
              <Fact name={words.openColumns.handle}><code>{row.id}</code></Fact>
            </dl>
          </li>
        );
      })}
    </ul>
  );
}

export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

export interface CloseHandleProps {
  /** What the handle has open. */
  readonly place: PathPlace;
  readonly id: string;
  readonly closed: () => void;
}

export function CloseHandle({ place, id, closed }: CloseHandleProps): JSX.Element {
  const close = (): void => {
    closeHandle(place, id)
      .then((wasOpen) => { say(wasOpen ? words.handleClosed : words.handleWasClosed); }, complain)
      .finally(closed);
  };
  return <FileActButton act="write" text={words.closeHandle} onClick={close} />;
}
