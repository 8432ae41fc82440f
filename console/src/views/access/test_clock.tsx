// The clock and the faults of a test server, by the endpoints that programs use. Shown only there.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button, Field, Select } from "../../components/controls";
import { Alert } from "../../components/messages";
import { Panel, Time } from "../../components/parts";
import { advance, clearFaults, type Faults, FAULTS, orderFault, readFaults, storeTime } from "../../protocol/test_server";
import { repeat } from "../../state/live";
import { countText } from "../../state/times";
import { say } from "../../state/toasts";
import { texts } from "../../texts";

const words = texts.testClock;
const EVERY_MS = 2_000;

export function TestClock(): JSX.Element {
  const now = useSignal("");
  const faults = useSignal<Faults | null>(null);
  const error = useSignal<unknown>(null);
  // Apart from what an act raised, which a read that goes well must not take away.
  const unread = useSignal<unknown>(null);
  useEffect(() => repeat(async (signal) => {
    now.value = await storeTime(signal);
    faults.value = await readFaults(signal);
    unread.value = null;
  }, EVERY_MS, (problem) => { unread.value = problem; }), []);
  const run = (act: () => Promise<void>): void => {
    error.value = null;
    act().catch((problem: unknown) => { error.value = problem; });
  };
  return (
    <Panel title={words.title}>
      <p class="hint">{words.hint}</p>
      <Alert error={unread.value} />
      <p>{words.storeTime}: {now.value ? <Time at={now.value} /> : texts.data.unknown}</p>
      <Clock move={(seconds) => { run(async () => { now.value = await advance(seconds); say(words.moved); }); }} />
      <h3>{words.faults}</h3>
      <p class="hint">{words.faultsHint}</p>
      {faults.value && <Rules faults={faults.value} />}
      <FaultForm order={(rule) => { run(async () => { faults.value = await orderFault(rule); say(words.ordered); }); }} />
      <div class="actions">
        <Button onClick={() => { run(async () => { faults.value = await clearFaults(); say(words.cleared); }); }}>{words.clear}</Button>
      </div>
      <Alert error={error.value} />
    </Panel>
  );
}

function Clock({ move }: { readonly move: (seconds: number) => void }): JSX.Element {
  const seconds = useSignal("60");
  const submit = (event: Event): void => {
    event.preventDefault();
    move(Number(seconds.value));
  };
  return (
    <form class="toolbar" onSubmit={submit}>
      <Field label={words.advanceBy} type="number" value={seconds.value} onInput={(value) => { seconds.value = value; }} required />
      <Button type="submit" kind="primary">{words.move}</Button>
    </form>
  );
}

function FaultForm({ order }: { readonly order: (rule: { operation: string; resource: string; fault: string; delay_s: number; times: number | null }) => void }): JSX.Element {
  const operation = useSignal("Put Blob");
  const resource = useSignal("*");
  const fault = useSignal<string>(FAULTS[0]);
  const delay = useSignal("0");
  const times = useSignal("1");
  const submit = (event: Event): void => {
    event.preventDefault();
    order({
      operation: operation.value.trim() || "*",
      resource: resource.value.trim() || "*",
      fault: fault.value,
      delay_s: Number(delay.value),
      times: times.value === "" ? null : Number(times.value),
    });
  };
  return (
    <form class="toolbar fault" onSubmit={submit}>
      <Field label={words.operation} value={operation.value} onInput={(value) => { operation.value = value; }} code />
      <Field label={words.resource} value={resource.value} onInput={(value) => { resource.value = value; }} code />
      <Select label={words.fault} value={fault.value} options={FAULTS.map((one) => [one, words.kinds[one]] as const)} onChange={(value) => { fault.value = value; }} />
      <Field label={words.delay} type="number" value={delay.value} onInput={(value) => { delay.value = value; }} />
      <Field label={words.times} type="number" value={times.value} onInput={(value) => { times.value = value; }} hint={words.timesHint} />
      <Button type="submit">{words.order}</Button>
    </form>
  );
}

function Rules({ faults }: { readonly faults: Faults }): JSX.Element {
  const rules = faults.plan.rules ?? [];
  if (rules.length === 0) return <p class="muted">{words.none}</p>;
  return (
    <div class="scroll" role="group" aria-label={words.faults} tabIndex={0}>
      <table aria-label={words.faults}>
        <thead>
          <tr>
            <th scope="col">{words.operation}</th>
            <th scope="col">{words.resource}</th>
            <th scope="col">{words.fault}</th>
            <th scope="col" class="number">{words.delay}</th>
            <th scope="col" class="number">{words.times}</th>
            <th scope="col" class="number">{words.matched}</th>
            <th scope="col" class="number">{words.hit}</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule, at) => (
            <tr key={at}>
              <td>{rule.operation ?? "*"}</td>
              <td><code>{rule.resource ?? "*"}</code></td>
              <td>{rule.fault ?? FAULTS[5]}</td>
              <td class="number">{String(rule.delay_s ?? 0)}</td>
              <td class="number">{rule.times === null || rule.times === undefined ? words.noLimit : countText(rule.times)}</td>
              <td class="number">{countText(faults.counts[at]?.matched ?? 0)}</td>
              <td class="number">{countText(faults.counts[at]?.hit ?? 0)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
