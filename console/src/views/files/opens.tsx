// Who has a file open, which bytes are locked and who caches what; each handle can be closed.

import type { JSX } from "preact";

import type { ShownFileOpens, ShownLock, ShownOpen } from "../../api/documents";
import { Empty } from "../../components/messages";
import { Panel, Time } from "../../components/parts";
import type { HandleRow } from "../../protocol/files/handles";
import type { PathPlace } from "../../protocol/files/place";
import { countText } from "../../state/times";
import { texts } from "../../texts";
import { CloseHandle, Fact, HandleItems } from "./handles";
import { lastByte } from "./ranges";
import type { WatchedFile } from "./watched";

const words = texts.files;

export function FileOpens({ place, watched }: { readonly place: PathPlace; readonly watched: WatchedFile }): JSX.Element {
  const found = watched.opens.value;
  const closed = (): void => { void watched.read(); };
  if (!found) return <ByRest place={place} rows={watched.handles.value?.rows ?? null} closed={closed} isThen={place.snapshot !== undefined} />;
  return (
    <div class="stacked">
      <Panel title={words.opensTitle}>
        <p class="hint">{words.opensHint}</p>
        {found.is_delete_pending && <p class="notice warning" role="status">{words.deletePending}</p>}
        {found.opens.length === 0 && <Empty title={words.noOpens}>{words.noHandlesHint}</Empty>}
        {found.opens.length > 0 && (
          <ul class="things" aria-label={words.opensTitle}>
            {found.opens.map((one, index) => <Open key={one.id || `rest ${index}`} one={one} place={place} closed={closed} />)}
          </ul>
        )}
        <More shown={found.opens.length} all={found.open_count} />
      </Panel>
      <Panel title={words.locksTitle}>
        {found.locks.length === 0 ? <p class="muted">{words.noLocks}</p> : <Locks found={found} />}
        <More shown={found.locks.length} all={found.lock_count} />
      </Panel>
    </div>
  );
}

function More({ shown, all }: { readonly shown: number; readonly all: number }): JSX.Element | null {
  return all > shown ? <p class="muted">{texts.blobs.uploadMore(countText(all - shown))}</p> : null;
}

interface OpenProps {
  readonly one: ShownOpen;
  readonly place: PathPlace;
  readonly closed: () => void;
}

function Open({ one, place, closed }: OpenProps): JSX.Element {
  return (
    <li class="thing open">
      <div class="thing-head">
        <strong class="thing-name">{one.client || words.restRequest}</strong>
        <span class="tag">{one.protocol}</span>
        {one.is_disconnected && <span class="tag">{words.disconnected}</span>}
        {one.is_durable && !one.is_disconnected && <span class="tag">{words.durable}</span>}
        {one.id && <span class="actions"><CloseHandle place={place} id={one.id} closed={closed} /></span>}
      </div>
      <dl class="open-facts">
        <Fact name={words.openColumns.access}>{accessText(one)}</Fact>
        <Fact name={words.openColumns.shares}>{one.share_mode.join(", ") || words.nothing}</Fact>
        {one.id && <Fact name={words.openColumns.caching}>{cachingText(one)}</Fact>}
        {one.opened_time && <Fact name={words.openColumns.opened}><Time at={one.opened_time} /></Fact>}
        {one.reconnected_time && <Fact name={words.openColumns.reconnected}><Time at={one.reconnected_time} /></Fact>}
        {one.id && <Fact name={words.openColumns.handle}><code>{one.id}</code></Fact>}
        {one.user && <Fact name={words.openColumns.user}>{one.user}</Fact>}
      </dl>
    </li>
  );
}

function accessText({ access, access_mask: mask }: ShownOpen): string {
  const uses = access.join(", ") || words.attributesOnly;
  return mask ? `${uses} (${mask})` : uses;
}

function cachingText({ caching_kind: kind, caching, is_breaking: isBreaking }: ShownOpen): string {
  if (!kind) return words.nothing;
  const text = words.caching[kind](caching.join(", "));
  return isBreaking ? `${text}; ${words.isBreaking}` : text;
}

function Locks({ found }: { readonly found: ShownFileOpens }): JSX.Element {
  const clients = new Map(found.opens.map((one) => [one.id, one.client]));
  const heads = words.lockColumns;
  return (
    <div class="scroll">
      <table aria-label={words.locksTitle}>
        <thead>
          <tr>
            <th scope="col" class="number">{heads.first}</th>
            <th scope="col" class="number">{heads.last}</th>
            <th scope="col">{heads.kind}</th>
            <th scope="col">{heads.state}</th>
            <th scope="col">{heads.client}</th>
          </tr>
        </thead>
        <tbody>
          {found.locks.map((lock, index) => (
            <tr key={index}>
              <td class="number">{lock.offset}</td>
              <td class="number">{lastText(lock)}</td>
              <td>{lock.is_exclusive ? words.exclusive : words.shared}</td>
              <td>{lock.is_waiting ? words.lockWaits : words.lockHeld}</td>
              <td>{clients.get(lock.open_id) ?? lock.open_id}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function lastText({ offset, length }: ShownLock): string {
  return lastByte(offset, length) ?? words.noBytes;
}

interface ByRestProps {
  readonly place: PathPlace;
  readonly rows: readonly HandleRow[] | null;
  readonly closed: () => void;
  /** Whether a snapshot is looked at. */
  readonly isThen: boolean;
}

/** What the public protocol tells, for who may not ask the read API. */
function ByRest({ place, rows, closed, isThen }: ByRestProps): JSX.Element {
  return (
    <Panel title={words.opensTitle}>
      <p class="hint">{isThen ? words.handlesThen : words.opensNeedKey}</p>
      {rows?.length === 0 && <Empty title={words.noOpens}>{words.noHandlesHint}</Empty>}
      {rows !== null && rows.length > 0 && <HandleItems label={words.opensTitle} place={place} rows={rows} closed={closed} />}
    </Panel>
  );
}
