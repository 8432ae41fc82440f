// The records of one place, by kind: a heading and a list for each kind that is there.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";

import type { PlaceRecords, ShownBarrier, ShownGate, ShownGroup, ShownHold } from "../../api/documents";
import { Button } from "../../components/controls";
import { ConfirmByName } from "../../components/dialog";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { Holders, Since, Waiting } from "./people";
import { actOnGate, breakHold, type Place } from "./watched";

const words = texts.coordination;
const KINDS = ["lock", "election", "semaphore", "rwlock"] as const;

export interface RecordsProps {
  readonly records: PlaceRecords;
  readonly place: Place;
  readonly mayAct: boolean;
  readonly receivedMs: number;
}

export function Records({ records, place, mayAct, receivedMs }: RecordsProps): JSX.Element {
  const { gates, held, barriers, groups, ids, unreadable } = records;
  const count = gates.length + held.length + barriers.length + groups.length + ids.length + unreadable.length;
  if (count === 0) return <p class="muted">{words.nothingHere}</p>;
  return (
    <>
      <Kind heading={words.headings.gates}>
        {gates.map((gate) => <Gate key={gate.name} gate={gate} place={place} mayAct={mayAct} />)}
      </Kind>
      {KINDS.map((kind) => (
        <Kind key={kind} heading={words.headings[kind]}>
          {held.filter((one) => one.kind === kind).map((one) => (
            <Hold key={one.name} hold={one} place={place} mayAct={mayAct} receivedMs={receivedMs} />
          ))}
        </Kind>
      ))}
      <Kind heading={words.headings.barriers}>
        {barriers.map((one) => <Barrier key={one.name} barrier={one} receivedMs={receivedMs} />)}
      </Kind>
      <Kind heading={words.headings.groups}>
        {groups.map((one) => <Group key={one.name} group={one} receivedMs={receivedMs} />)}
      </Kind>
      <Kind heading={words.headings.ids}>
        {ids.map((one) => <Thing key={one.name} name={one.name} state={words.nextId(one.next_id)} />)}
      </Kind>
      <Kind heading={words.headings.unreadable}>
        {unreadable.map((one) => <Thing key={one.key} name={one.key}><p class="muted">{one.why}</p></Thing>)}
      </Kind>
    </>
  );
}

function Kind({ heading, children }: { readonly heading: string; readonly children: readonly JSX.Element[] }): JSX.Element | null {
  if (children.length === 0) return null;
  return (
    <section class="kind">
      <h3>{heading}</h3>
      <ul class="things">{children}</ul>
    </section>
  );
}

interface ThingProps {
  readonly name: string;
  readonly state?: string;
  /** Whether the state is shown as one that lets through or is held. */
  readonly isOn?: boolean;
  readonly note?: string;
  readonly actions?: ComponentChildren;
  readonly children?: ComponentChildren;
}

function Thing({ name, state, isOn, note, actions, children }: ThingProps): JSX.Element {
  return (
    <li class="thing">
      <div class="thing-head">
        <strong class="thing-name">{name}</strong>
        {state && <span class={isOn ? "tag on" : "tag"}>{state}</span>}
        {note && <span class="muted">{note}</span>}
        {actions && <span class="actions">{actions}</span>}
      </div>
      {children}
    </li>
  );
}

interface GateProps {
  readonly gate: ShownGate;
  readonly place: Place;
  readonly mayAct: boolean;
}

function Gate({ gate, place, mayAct }: GateProps): JSX.Element {
  const act = async (kind: "open" | "rearm", said: string): Promise<void> => {
    try {
      await actOnGate(place, gate.name, kind, gate.state);
      say(said);
    } catch (error) {
      complain(error);
    }
  };
  const buttons = mayAct && (
    <>
      <Button kind={gate.is_open ? "plain" : "primary"} name={words.acts.open(gate.name)} onClick={() => void act("open", words.acts.opened(gate.name))}>
        {words.open}
      </Button>
      <Button name={words.acts.rearm(gate.name)} onClick={() => void act("rearm", words.acts.rearmed(gate.name))}>{words.rearm}</Button>
    </>
  );
  return (
    <Thing name={gate.name} state={gate.is_open ? words.isOpen : words.isClosed} isOn={gate.is_open} note={words.generation(gate.generation)} actions={buttons}>
      {gate.who && <p class="muted">{words.changed}: {gate.who}, <Since at={gate.since} /></p>}
      {gate.payload && <p>{words.payload}: <code>{gate.payload}</code></p>}
      <Waiting waiting={gate.waiting} count={gate.waiting_count} />
    </Thing>
  );
}

interface HoldProps {
  readonly hold: ShownHold;
  readonly place: Place;
  readonly mayAct: boolean;
  readonly receivedMs: number;
}

function Hold({ hold, place, mayAct, receivedMs }: HoldProps): JSX.Element {
  // The hold that the person saw when the dialog was opened, which may not be the one of now.
  const breaking = useSignal<ShownHold | null>(null);
  const asked = breaking.value;
  const isHeld = hold.holders.length > 0;
  const button = mayAct && isHeld && (
    <Button kind="danger" name={words.acts.break(hold.name)} onClick={() => { breaking.value = hold; }}>{words.break}</Button>
  );
  const note = hold.limit ? words.limit(hold.holders.length, hold.limit) : isHeld ? "" : words.lastFence(hold.fence);
  return (
    <Thing name={hold.name} state={isHeld ? words.held : words.free} isOn={isHeld} note={note} actions={button}>
      <Holders holders={hold.holders} receivedMs={receivedMs} />
      {hold.value && <p>{words.value}: <code>{hold.value}</code></p>}
      {hold.end && <p class="muted">{words.ended}: {hold.end}</p>}
      <Waiting waiting={hold.waiting} count={hold.waiting_count} />
      {asked && (
        <ConfirmByName
          title={words.breakTitle(asked.name)}
          risk={words.breakRisk(asked.holders.map((one) => one.who).join(", "))}
          name={asked.name}
          onClose={() => { breaking.value = null; }}
          act={async () => {
            const broken = await breakHold(place, asked.name, asked.kind, asked.state);
            say(words.acts.broken(asked.name, broken.join(", ")));
          }}
        />
      )}
    </Thing>
  );
}

function Barrier({ barrier, receivedMs }: { readonly barrier: ShownBarrier; readonly receivedMs: number }): JSX.Element {
  return (
    <Thing name={barrier.name} state={words.arrived(barrier.arrived.length, barrier.parties)} note={words.generation(barrier.generation)}>
      <Holders holders={barrier.arrived} receivedMs={receivedMs} />
    </Thing>
  );
}

function Group({ group, receivedMs }: { readonly group: ShownGroup; readonly receivedMs: number }): JSX.Element {
  const members = group.members.map((one) => ({ ...one, role: "", fence: "", writes: 0, note: one.data }));
  return (
    <Thing name={group.name} state={words.members(members.length, group.member_count)}>
      <Holders holders={members} receivedMs={receivedMs} />
    </Thing>
  );
}
