// The snapshots of a share: open one, delete one.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { ConfirmByName } from "../../components/dialog";
import { Empty, Problem } from "../../components/messages";
import { Panel, Time } from "../../components/parts";
import { Lacks } from "../../components/rights";
import type { SharePlace } from "../../protocol/files/place";
import { deleteShare, listShareSnapshots } from "../../protocol/files/shares";
import { useLoaded } from "../../state/loaded";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { FileActButton, lacking, shareAddress } from "./place";

const words = texts.files;

export function ShareSnapshots({ place, round }: { readonly place: SharePlace; readonly round: number }): JSX.Element {
  const right = lacking("listShares");
  const snapshots = useLoaded(`${round} ${right}`, (signal) => (right ? Promise.resolve([]) : listShareSnapshots(place, signal)));
  const doomed = useSignal<string | null>(null);
  if (right) return <Lacks right={right} />;
  const rows = snapshots.value.value ?? [];
  return (
    <Panel title={words.tabs.snapshots}>
      <p class="hint">{words.snapshotsHint}</p>
      <Problem error={snapshots.error.value} />
      {snapshots.value.value && rows.length === 0 && <Empty title={words.noSnapshots}>{words.noSnapshotsHint}</Empty>}
      {rows.length > 0 && (
        <div class="scroll">
          <table aria-label={words.tabs.snapshots}>
            <thead>
              <tr>
                <th scope="col">{words.snapshotColumn}</th>
                <th scope="col" class="minor">{words.takenColumn}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {rows.map(({ snapshot }) => (
                <tr key={snapshot}>
                  <td><a href={shareAddress({ ...place, snapshot })}><code>{snapshot}</code></a></td>
                  <td class="minor"><Time at={snapshot} /></td>
                  <td class="acts">
                    <FileActButton act="deleteShare" kind="quiet" text={words.delete} name={words.deleteOf(snapshot)} onClick={() => { doomed.value = snapshot; }} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {doomed.value !== null && <DeleteSnapshot place={place} snapshot={doomed.value} onClose={() => { doomed.value = null; }} done={snapshots.reload} />}
    </Panel>
  );
}

interface DeleteSnapshotProps {
  readonly place: SharePlace;
  readonly snapshot: string;
  readonly onClose: () => void;
  readonly done: () => void;
}

function DeleteSnapshot({ place, snapshot, onClose, done }: DeleteSnapshotProps): JSX.Element {
  const act = async (): Promise<void> => {
    await deleteShare({ ...place, snapshot });
    say(words.deleted(snapshot));
    done();
  };
  return <ConfirmByName title={words.deleteSnapshotTitle} risk={words.deleteSnapshotRisk} name={snapshot} onClose={onClose} act={act} />;
}
