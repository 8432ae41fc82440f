// Who may read a container without a signature, its stored policies, its lease and protection.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button, Field, Select } from "../../components/controls";
import { LeaseButtons, LeaseState } from "../../components/lease";
import { Problem } from "../../components/messages";
import { Facts, Panel, Time } from "../../components/parts";
import { type ContainerAccess, type ContainerProperties, containerAccess, containerProperties, setContainerAccess } from "../../protocol/blob/containers";
import { heldId } from "../../protocol/across/leases";
import type { ContainerPlace } from "../../protocol/blob/place";
import { repeat } from "../../state/live";
import { type Loaded, useLoaded } from "../../state/loaded";
import { complain, say } from "../../state/toasts";
import { texts } from "../../texts";
import { ActButton, lacking, Lacks } from "./place";

const words = texts.blobs;
const LIVE_MS = 1500;

export function ContainerSettings({ place }: { readonly place: ContainerPlace }): JSX.Element {
  const right = lacking("readContainer");
  return right ? <Lacks right={right} /> : <Settings place={place} />;
}

function Settings({ place }: { readonly place: ContainerPlace }): JSX.Element {
  const properties = useSignal<ContainerProperties | null>(null);
  const error = useSignal<unknown>(null);
  const read = async (signal?: AbortSignal): Promise<void> => {
    properties.value = await containerProperties(place, signal);
    error.value = null;
  };
  useEffect(() => repeat(read, LIVE_MS, (problem) => { error.value = problem; }), []);
  const shown = properties.value;
  return (
    <div class="columns">
      <Panel title={words.leaseTitle}>
        <Problem error={error.value} />
        {shown && (
          <>
            <Facts
              rows={[
                [words.facts.lease, <LeaseState place={place} state={shown.leaseState} duration={shown.leaseDuration} />],
                [words.facts.modified, shown.modified && <Time at={shown.modified} />],
                [words.facts.etag, <code>{shown.etag}</code>],
                [words.protection, protectionOf(shown)],
                ...shown.metadata.map(([name, value]) => [`${words.facts.metadata}: ${name}`, value] as const),
              ]}
            />
            <div class="actions">
              <LeaseButtons place={place} state={shown.leaseState} right={lacking("leaseContainer")} changed={() => { void read().catch(complain); }} />
            </div>
          </>
        )}
      </Panel>
      <Access place={place} />
    </div>
  );
}

function protectionOf(shown: ContainerProperties): string {
  const all = [shown.hasPolicy && words.retention, shown.hasHold && words.legalHold, shown.isVersionLevel && words.versionLevel];
  return all.filter(Boolean).join(", ") || words.noProtection;
}

function Access({ place }: { readonly place: ContainerPlace }): JSX.Element {
  const right = lacking("readAccess");
  if (right) return <Panel title={words.accessLevel}><Lacks right={right} /></Panel>;
  return <AccessRead place={place} />;
}

function AccessRead({ place }: { readonly place: ContainerPlace }): JSX.Element {
  const access = useLoaded(place.container, (signal) => containerAccess(place, signal));
  const set = async (changed: ContainerAccess, said: string): Promise<void> => {
    await setContainerAccess(place, changed, heldId(place));
    say(said);
    access.reload();
  };
  return (
    <div class="stacked">
      <Panel title={words.accessLevel}>
        <Problem error={access.error.value} />
        {access.value.value && <Level key={access.value.value.level} access={access.value.value} set={set} />}
      </Panel>
      <Panel title={words.policies}>
        {access.value.value && <Policies access={access.value.value} loaded={access} set={set} />}
      </Panel>
    </div>
  );
}

interface SetProps {
  readonly access: ContainerAccess;
  readonly set: (changed: ContainerAccess, said: string) => Promise<void>;
}

function Level({ access, set }: SetProps): JSX.Element {
  const chosen = useSignal(access.level);
  const options = Object.entries(words.access);
  return (
    <div class="with-button">
      <Select label={words.facts.publicAccess} value={chosen.value} options={options} onChange={(value) => { chosen.value = value; }} />
      <Button disabled={chosen.value === access.level} onClick={() => { set({ ...access, level: chosen.value }, words.accessSet).catch(complain); }}>{words.setAccess}</Button>
    </div>
  );
}

function Policies({ access, set }: SetProps & { readonly loaded: Loaded<ContainerAccess> }): JSX.Element {
  const id = useSignal("");
  const rights = useSignal("r");
  const expiry = useSignal("");
  const add = (event: Event): void => {
    event.preventDefault();
    const policy = { id: id.value, start: "", expiry: expiry.value, rights: rights.value };
    set({ ...access, policies: [...access.policies.filter((one) => one.id !== policy.id), policy] }, words.policyAdded).then(() => { id.value = ""; }, complain);
  };
  return (
    <>
      {access.policies.length === 0 && <p class="muted">{words.policiesEmpty}</p>}
      {access.policies.length > 0 && (
        <div class="scroll">
          <table aria-label={words.policies}>
            <thead>
              <tr>
                <th scope="col">{words.policyColumns.id}</th>
                <th scope="col">{words.policyColumns.rights}</th>
                <th scope="col">{words.policyColumns.expiry}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {access.policies.map((one) => (
                <tr key={one.id}>
                  <td class="wrap">{one.id}</td>
                  <td><code>{one.rights}</code></td>
                  <td>{one.expiry && <Time at={one.expiry} />}</td>
                  <td class="acts">
                    <ActButton
                      act="readAccess"
                      kind="quiet"
                      text={words.removeRow}
                      name={words.removeNamed(one.id)}
                      onClick={() => { set({ ...access, policies: access.policies.filter((other) => other !== one) }, words.policyRemoved).catch(complain); }}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <form class="row-form" onSubmit={add}>
        <Field label={words.policyId} value={id.value} onInput={(value) => { id.value = value; }} required code />
        <Field label={words.policyRights} value={rights.value} onInput={(value) => { rights.value = value; }} code />
        <Field label={words.policyExpiry} value={expiry.value} hint={words.policyExpiryHint} onInput={(value) => { expiry.value = value; }} code />
        <div class="actions"><Button type="submit">{words.addPolicy}</Button></div>
      </form>
    </>
  );
}
