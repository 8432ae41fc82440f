// Who holds something, with a countdown, and who waits, in order.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { ShownHolder, ShownWaiter } from "../../api/documents";
import { Time } from "../../components/parts";
import { texts } from "../../texts";

const words = texts.coordination;
const TICK_MS = 500;

/** One clock for all countdowns; it runs while one is shown. */
const nowMs = signal(0);
let shownCount = 0;
let timer = 0;

function useClock(): void {
  useEffect(() => {
    shownCount += 1;
    nowMs.value = performance.now();
    if (shownCount === 1) timer = window.setInterval(() => { nowMs.value = performance.now(); }, TICK_MS);
    return () => {
      shownCount -= 1;
      if (shownCount === 0) clearInterval(timer);
    };
  }, []);
}

export interface HolderRow extends ShownHolder {
  /** Said of this holder beside its role. */
  readonly note?: string;
}

export function Holders({ holders, receivedMs }: { readonly holders: readonly HolderRow[]; readonly receivedMs: number }): JSX.Element | null {
  if (holders.length === 0) return null;
  return (
    <ul class="people">
      {holders.map((one, index) => (
        <li key={`${index} ${one.who}`}>
          <span class="person">{one.who}</span>
          {one.role && one.role !== "hold" && <span class="tag">{one.role}</span>}
          <span class="muted">{words.since} <Since at={one.since} /></span>
          <Countdown leftS={one.left_s} ttlS={one.ttl_s} receivedMs={receivedMs} />
          {one.fence && <span class="muted">{words.fence} {one.fence}</span>}
          {one.writes > 0 && <span class="muted">{words.renewals(one.writes)}</span>}
          {one.note && <code>{one.note}</code>}
        </li>
      ))}
    </ul>
  );
}

interface CountdownProps {
  readonly leftS: number;
  readonly ttlS: number;
  readonly receivedMs: number;
}

function Countdown({ leftS, ttlS, receivedMs }: CountdownProps): JSX.Element {
  useClock();
  const left = Math.max(0, leftS - Math.max(0, nowMs.value - receivedMs) / 1000);
  return (
    <span class="countdown">
      <progress max={Math.max(ttlS, leftS)} value={left} aria-hidden="true" />
      <span role="timer">{left > 0 ? words.left(`${Math.ceil(left)} s`) : words.over}</span>
    </span>
  );
}

export function Waiting({ waiting, count }: { readonly waiting: readonly ShownWaiter[]; readonly count: number }): JSX.Element | null {
  if (count === 0) return null;
  return (
    <div class="waiting">
      <p>{words.waiting(count)}</p>
      <ol class="people">
        {waiting.map((one, index) => (
          <li key={`${index} ${one.who}`}>
            <span class="person">{one.who}</span>
            {one.is_queued && <span class="tag">{words.queued}</span>}
            {one.since && <span class="muted">{words.since} <Since at={one.since} /></span>}
          </li>
        ))}
      </ol>
      {count > waiting.length && <p class="muted">{words.waitingMore(count - waiting.length)}</p>}
    </div>
  );
}

/** A time that a client wrote into a record: any text. */
export function Since({ at }: { readonly at: string }): JSX.Element {
  return Number.isNaN(Date.parse(at)) ? <span>{at}</span> : <Time at={at} />;
}
