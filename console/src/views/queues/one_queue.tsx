// The page of one queue: its length now and while it was watched, and what one does with messages.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Chart } from "../../components/chart";
import { ConfirmByName } from "../../components/dialog";
import { Problem } from "../../components/messages";
import { Panel, ViewHead } from "../../components/parts";
import { RightButton } from "../../components/rights";
import { clearQueue, type QueueAt, queueLength } from "../../protocol/queues";
import { repeat } from "../../state/live";
import { addressOf, navigate } from "../../state/router";
import { currentSession } from "../../state/session";
import { countText } from "../../state/times";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { DeletePlace } from "../places/place_list";
import { lackingPlace } from "../places/rights";
import { Crumbs } from "../service_view";
import { samplesOf, type Samples } from "./lengths";
import { Messages } from "./messages";
import { PutForm } from "./put_form";
import { removeQueue } from "./queue_list";

const SAMPLE_EVERY_MS = 2_000;
const words = texts.queues;

export function OneQueue({ at, isOnly }: { readonly at: QueueAt; readonly isOnly: boolean }): JSX.Element {
  const samples = samplesOf(at);
  const error = useSignal<unknown>(null);
  const again = useSignal(0);
  const asked = useSignal<"clear" | "delete" | null>(null);
  const close = (): void => { asked.value = null; };
  const changed = (): void => { again.value += 1; };
  useEffect(() => repeat(async (signal) => {
    samples.add(Date.now() / 1000, await queueLength(currentSession().credential, at, signal));
    error.value = null;
  }, SAMPLE_EVERY_MS, (problem) => { error.value = problem; }), [again.value]);
  const clear = async (): Promise<void> => {
    await clearQueue(currentSession().credential, at);
    say(words.cleared(at.queue));
    changed();
  };
  return (
    <div class="queues">
      <ViewHead title={words.title}>
        <RightButton right={lackingPlace("clear")} kind="danger" text={words.clear} onClick={() => { asked.value = "clear"; }} />
        <RightButton right={lackingPlace("remove")} kind="danger" text={words.deleteOf(at.queue)} onClick={() => { asked.value = "delete"; }} />
      </ViewHead>
      {isOnly ? <h2><code>{at.queue}</code></h2> : <Crumbs view="queues" all={words.all} account={at.account} name={at.queue} />}
      <Problem error={error.value} />
      <div class="queue-page">
        <Messages at={at} onChanged={changed} />
        <div>
          <Lengths samples={samples} />
          <Panel title={words.putTitle}><PutForm at={at} onPut={changed} /></Panel>
        </div>
      </div>
      {asked.value === "clear" && <ConfirmByName title={words.clearTitle} risk={words.clearRisk} name={at.queue} onClose={close} act={clear} />}
      {asked.value === "delete" && (
        <DeletePlace words={words} name={at.queue} remove={(queue) => removeQueue(at.account, queue)} onClose={close} onDeleted={() => { navigate(addressOf("queues", [at.account]), true); }} />
      )}
    </div>
  );
}

function Lengths({ samples }: { readonly samples: Samples }): JSX.Element {
  const { times, values } = samples.all.value;
  const newest = values.at(-1);
  return (
    <div>
      <p class="length-line">
        <span class="length">{newest === undefined ? texts.data.unknown : countText(newest)}</span>{" "}
        <span class="muted">{words.lengthNow}</span>
      </p>
      <Chart title={words.lengthTitle} times={times} series={[{ label: "", color: "--series-1", values }]} format={countText} />
    </div>
  );
}
