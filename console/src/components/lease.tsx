// The lease of a blob or container, of a file or share: its state, the time that is left, and what
// can be done. The state is read again each second and a half, so that what others do is seen.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { Field } from "./controls";
import { FormDialog } from "./dialog";
import { Countdown, TimeOfOthers } from "./lease_time";
import { acquireLease, breakLease, canEnd, forgetLease, heldLease, leasedName, type LeasePlace, releaseLease, renewLease } from "../protocol/across/leases";
import { ServiceError } from "../protocol/errors";
import { complain, say } from "../state/toasts";
import { texts } from "../texts";
import { RightButton } from "./rights";

const words = texts.blobs;

export interface LeaseProps {
  readonly place: LeasePlace;
  /** In Azure's words: available, leased, breaking, broken, expired. */
  readonly state: string;
  /** The text of the right that the sign-in lacks for it; "" for none. */
  readonly right: string;
  /** Read the state anew. */
  readonly changed: () => void;
}

export function LeaseButtons({ place, state, right, changed }: LeaseProps): JSX.Element {
  const open = useSignal<"acquire" | "release" | null>(null);
  const held = heldLease(place);
  const isLeased = state === "leased" || state === "breaking";
  const run = (work: Promise<void>, said: string): void => {
    const failed = (error: unknown): void => {
      // Another has the lease now: the id of this page is of no use any more.
      if (error instanceof ServiceError && /^LeaseIdMismatch|^LeaseNotPresent/.test(error.code)) forgetLease(place);
      complain(error);
    };
    work.then(() => { say(said); }, failed).finally(changed);
  };
  const release = (): void => {
    if (held) run(releaseLease(place, held.id), words.leaseReleased);
    else open.value = "release";
  };
  return (
    <>
      {!isLeased && <RightButton right={right} text={words.acquireLease} onClick={() => { open.value = "acquire"; }} />}
      {held && canEnd(place) && <RightButton right={right} text={words.renewLease} onClick={() => { run(renewLease(place, held), words.leaseRenewed); }} />}
      {isLeased && <RightButton right={right} text={words.releaseLease} onClick={release} />}
      {isLeased && <RightButton right={right} text={words.breakLease} onClick={() => { run(breakLease(place), words.leaseBroken); }} />}
      {open.value === "acquire" && <Acquire place={place} onClose={() => { open.value = null; }} changed={changed} />}
      {open.value === "release" && <Release place={place} onClose={() => { open.value = null; }} changed={changed} />}
    </>
  );
}

interface DialogOf {
  readonly place: LeasePlace;
  readonly onClose: () => void;
  readonly changed: () => void;
}

function Acquire({ place, onClose, changed }: DialogOf): JSX.Element {
  const seconds = useSignal(canEnd(place) ? "60" : "-1");
  const act = async (): Promise<void> => {
    const duration = Number(seconds.value);
    const isRight = duration === -1 || (Number.isInteger(duration) && duration >= 15 && duration <= 60);
    if (!isRight || seconds.value.trim() === "") throw new Error(words.notADuration);
    await acquireLease(place, duration);
    say(words.leaseAcquired);
    changed();
  };
  return (
    <FormDialog title={words.acquireTitle(leasedName(place))} onClose={onClose} action={words.acquire} act={act}>
      {canEnd(place) ? (
        <Field label={words.duration} value={seconds.value} hint={words.durationHint} onInput={(value) => { seconds.value = value; }} />
      ) : <p>{words.leaseWithoutEnd}</p>}
    </FormDialog>
  );
}

function Release({ place, onClose, changed }: DialogOf): JSX.Element {
  const id = useSignal("");
  const act = async (): Promise<void> => {
    await releaseLease(place, id.value.trim());
    say(words.leaseReleased);
    changed();
  };
  return (
    <FormDialog title={words.releaseTitle(leasedName(place))} onClose={onClose} action={words.release} disabled={id.value.trim() === ""} act={act}>
      <Field label={words.leaseId} value={id.value} hint={words.leaseIdHint} onInput={(value) => { id.value = value; }} code />
    </FormDialog>
  );
}

/** The state in words, with the time that is left. */
export function LeaseState({ place, state, duration }: { readonly place: LeasePlace; readonly state: string; readonly duration: string }): JSX.Element {
  const held = heldLease(place);
  const isLeased = state === "leased";
  // `state` may have been read before the lease was acquired: only what was seen as leased is lost.
  const seen = useRef("");
  if (held && isLeased) seen.current = held.id;
  const hasEnded = held !== undefined && held.endsMs !== null && held.endsMs < Date.now();
  const isLost = held !== undefined && !isLeased && state !== "breaking" && (seen.current === held.id || hasEnded);
  useEffect(() => { if (isLost) forgetLease(place); }, [isLost]);
  return (
    <span class="lease-state">
      <LeaseText state={state} />
      {isLeased && held && <><span class="muted">{words.leaseHere}</span><Countdown endsMs={held.endsMs} /></>}
      {isLeased && !held && <span class="muted">{words.leaseElsewhere}</span>}
      {isLeased && !held && duration === "infinite" && <Countdown endsMs={null} />}
      {"container" in place && ((isLeased && !held && duration !== "infinite") || state === "breaking") && <TimeOfOthers key={state} place={place} />}
    </span>
  );
}

/** The state by itself, for lists. */
export function LeaseText({ state }: { readonly state: string }): JSX.Element {
  return <span class={`lease ${state}`}>{state}</span>;
}
