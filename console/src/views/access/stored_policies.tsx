// Stored access policies of containers, queues, tables and shares, read by the public protocol.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button, Select } from "../../components/controls";
import { Empty, Problem } from "../../components/messages";
import { Panel, Time } from "../../components/parts";
import type { StoredPolicy } from "../../protocol/blob/containers";
import { SERVICES, type Service } from "../../protocol/credentials";
import { listPlaces, readPolicies } from "../../protocol/across/stored_policies";
import { useLoaded } from "../../state/loaded";
import { account, currentSession } from "../../state/session";
import { textOfError } from "../../state/toasts";
import { texts } from "../../texts";

const words = texts.access;
const ASKED_AT_ONCE = 4;

interface PlacePolicies {
  readonly name: string;
  readonly policies: readonly StoredPolicy[];
  /** Why they could not be read; "" if they were. */
  readonly problem: string;
}

interface Page {
  readonly places: readonly PlacePolicies[];
  readonly next: string;
}

export function StoredPolicies(): JSX.Element {
  const service = useSignal<Service>("blob");
  const marker = useSignal("");
  const page = useLoaded(`${account.value} ${service.value} ${marker.value}`, (signal) => readPage(service.value, marker.value, signal));
  const found = page.value.value;
  const choose = (value: string): void => {
    marker.value = "";
    service.value = SERVICES.find((one) => one === value) ?? "blob";
  };
  return (
    <Panel title={words.policiesHeading}>
      <p class="hint">{words.policiesHint}</p>
      <div class="toolbar">
        <Select label={words.policiesOf} value={service.value} options={SERVICES.map((one) => [one, words.places[one]] as const)} onChange={choose} />
        <Button name={words.reloadPolicies} onClick={page.reload}>{words.reload}</Button>
      </div>
      <Problem error={page.error.value} />
      {found && <Places page={found} service={service.value} />}
      {found && (marker.value || found.next) && (
        <div class="actions">
          <Button disabled={!marker.value} onClick={() => { marker.value = ""; }}>{texts.data.firstPage}</Button>
          <Button disabled={!found.next} onClick={() => { marker.value = found.next; }}>{texts.data.nextPage}</Button>
        </div>
      )}
    </Panel>
  );
}

function Places({ page, service }: { readonly page: Page; readonly service: Service }): JSX.Element {
  const shown = page.places.filter((one) => one.policies.length > 0 || one.problem);
  if (shown.length === 0) return <Empty title={words.noPolicies(words.places[service])}>{words.noPoliciesHint}</Empty>;
  return (
    <div class="scroll" role="group" aria-label={words.policiesHeading} tabIndex={0}>
      <table aria-label={words.policiesHeading}>
        <thead>
          <tr>
            <th scope="col">{words.place}</th>
            <th scope="col">{words.policy}</th>
            <th scope="col">{words.permits}</th>
            <th scope="col">{words.from}</th>
            <th scope="col">{words.until}</th>
          </tr>
        </thead>
        <tbody>
          {shown.flatMap((one) => (one.problem ? [<Unread key={one.name} place={one} />] : rows(one)))}
        </tbody>
      </table>
    </div>
  );
}

function rows({ name, policies }: PlacePolicies): JSX.Element[] {
  return policies.map((policy) => (
    <tr key={`${name} ${policy.id}`}>
      <th scope="row"><code>{name}</code></th>
      <td><code>{policy.id}</code></td>
      <td>{policy.rights ? <code>{policy.rights}</code> : words.leftToSas}</td>
      <td>{policy.start ? <PolicyTime at={policy.start} /> : words.leftToSas}</td>
      <td>{policy.expiry ? <PolicyTime at={policy.expiry} /> : words.leftToSas}</td>
    </tr>
  ));
}

/** A time as clients stored it: what is none to a browser is shown as it is. */
function PolicyTime({ at }: { readonly at: string }): JSX.Element {
  return Number.isNaN(Date.parse(at)) ? <code>{at}</code> : <Time at={at} />;
}

function Unread({ place }: { readonly place: PlacePolicies }): JSX.Element {
  return (
    <tr>
      <th scope="row"><code>{place.name}</code></th>
      <td colSpan={4} class="muted">{place.problem}</td>
    </tr>
  );
}

// A few at a time: a page of places must not hold all of the browser's connections.
async function readPage(service: Service, marker: string, signal: AbortSignal): Promise<Page> {
  const { credential } = currentSession();
  const owner = account.value;
  const { rows, next } = await listPlaces(credential, service, owner, marker, signal);
  const found = new Map<string, PlacePolicies>();
  const left = [...rows];
  const ask = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      try {
        found.set(name, { name, policies: await readPolicies(credential, { service, account: owner, name }, signal), problem: "" });
      } catch (error) {
        if (signal.aborted) throw error;
        found.set(name, { name, policies: [], problem: textOfError(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, ask));
  return { places: rows.flatMap((name) => found.get(name) ?? []), next };
}
