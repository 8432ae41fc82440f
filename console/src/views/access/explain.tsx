// A shared access signature, field by field. The server explains it: it is sent in the body of a
// signed request, never in an address. What was pasted is kept in this form only.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { ExplainedSas } from "../../api/documents";
import { Button, Field } from "../../components/controls";
import { Alert } from "../../components/messages";
import { Facts, Panel, Time } from "../../components/parts";
import type { StoredPolicy } from "../../protocol/blob/containers";
import { postApi } from "../../protocol/requests";
import { readPolicies } from "../../protocol/across/stored_policies";
import { accountQuery, currentSession } from "../../state/session";
import { textOfError } from "../../state/toasts";
import { texts } from "../../texts";

const words = texts.access;

interface Explanation {
  readonly sas: ExplainedSas;
  /** Why the stored policy that it names was not read; "" if it was, or none is named. */
  readonly unread: string;
}

export function Explain(): JSX.Element {
  const text = useSignal("");
  const found = useSignal<Explanation | null>(null);
  const error = useSignal<unknown>(null);
  const isBusy = useSignal(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    isBusy.value = true;
    error.value = null;
    found.value = null;
    try {
      found.value = await explain(text.value);
    } catch (problem) {
      error.value = problem;
    }
    isBusy.value = false;
  };
  return (
    <Panel title={words.explainHeading}>
      <form class="explain" onSubmit={(event) => void submit(event)}>
        <Field label={words.sas} type="password" value={text.value} hint={words.sasHint} onInput={(value) => { text.value = value; }} required code />
        <Button type="submit" kind="primary" disabled={isBusy.value}>{words.explain}</Button>
      </form>
      <Alert error={error.value} />
      {found.value && <Result explanation={found.value} />}
    </Panel>
  );
}

/** Ask the server; if the signature names a stored policy of this account, read it and ask again. */
async function explain(text: string): Promise<Explanation> {
  const { credential } = currentSession();
  const ask = (policies: readonly StoredPolicy[] | null): Promise<ExplainedSas> => {
    const given = policies?.map(({ id, start, expiry, rights }) => ({ id, start, expiry, permission: rights }));
    return postApi<ExplainedSas>("access/explain", { sas: text, ...(given ? { policies: given } : {}) }, credential, accountQuery());
  };
  const sas = await ask(null);
  const { policy, service, account, container } = sas;
  if (!policy) return { sas, unread: "" };
  if (credential.kind !== "key" || account !== credential.account || !service || !container) return { sas, unread: words.policyElsewhere };
  try {
    return { sas: await ask(await readPolicies(credential, { service, account, name: container })), unread: "" };
  } catch (problem) {
    return { sas, unread: textOfError(problem) };
  }
}

function Result({ explanation }: { readonly explanation: Explanation }): JSX.Element {
  const { sas, unread } = explanation;
  const region = useRef<HTMLElement>(null);
  useEffect(() => { region.current?.focus(); }, [sas]);
  return (
    <section class="explanation" aria-label={words.explanation} ref={region} tabIndex={-1}>
      <p class="verdict">
        <strong>{words.kinds[sas.kind]}</strong>
        <Signature sas={sas} />
        <span class={sas.state === "valid" ? "tag on" : "tag warning"}>{words.states[sas.state]}</span>
      </p>
      <Facts
        rows={[
          [words.reaches, sas.reaches],
          [words.permits, <Permits key="permits" sas={sas} />],
          [words.from, sas.starts_time ? <Time key="from" at={sas.starts_time} /> : words.atOnce],
          [words.until, sas.expires_time ? <Time key="until" at={sas.expires_time} /> : words.byPolicy],
          ...(sas.policy ? [[words.policy, <Policy key="policy" id={sas.policy} unread={unread} />] as const] : []),
          ...(sas.account ? [[words.account, <code key="account">{sas.account}</code>] as const] : []),
          [words.addresses, sas.addresses],
          [words.protocols, sas.protocols],
        ]}
      />
      <Findings heading={words.problems} texts={sas.problems} />
      <Findings heading={words.mistakes} texts={sas.mistakes} />
      {sas.string_to_sign !== null && (
        <>
          <h3>{texts.requests.stringToSign}</h3>
          <p class="hint">{words.stringToSignHint}</p>
          <pre class="string-to-sign" tabIndex={0}>{sas.string_to_sign}</pre>
        </>
      )}
      <Fields sas={sas} />
    </section>
  );
}

function Signature({ sas }: { readonly sas: ExplainedSas }): JSX.Element {
  if (sas.signature === "right") return <span class="tag on">{words.right(sas.signing_key)}</span>;
  if (sas.signature === "wrong") return <span class="tag bad">{words.wrong}</span>;
  return <span class="muted">{words.unchecked(sas.unchecked)}</span>;
}

function Permits({ sas }: { readonly sas: ExplainedSas }): JSX.Element {
  if (sas.permits.length === 0) return <>{sas.policy ? words.byPolicy : words.nothing}</>;
  return (
    <ul class="permits">
      {sas.permits.map((one) => <li key={one.letter}><code>{one.letter}</code> {one.text}</li>)}
    </ul>
  );
}

function Policy({ id, unread }: { readonly id: string; readonly unread: string }): JSX.Element {
  return <><code>{id}</code>{unread && <span class="muted"> {unread}</span>}</>;
}

function Findings({ heading, texts: found }: { readonly heading: string; readonly texts: readonly string[] }): JSX.Element | null {
  if (found.length === 0) return null;
  return (
    <div class="notice warning">
      <h3>{heading}</h3>
      <ul class="mistakes">{found.map((one) => <li key={one}>{one}</li>)}</ul>
    </div>
  );
}

function Fields({ sas }: { readonly sas: ExplainedSas }): JSX.Element {
  return (
    <div class="scroll" role="group" aria-label={words.fields} tabIndex={0}>
      <table class="sas-fields" aria-label={words.fields}>
        <thead>
          <tr>
            <th scope="col">{words.field}</th>
            <th scope="col">{words.value}</th>
            <th scope="col">{words.meaning}</th>
          </tr>
        </thead>
        <tbody>
          {sas.fields.map((one) => (
            <tr key={one.name}>
              <th scope="row"><code>{one.name}</code></th>
              <td><code>{one.value}</code></td>
              <td>{one.meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
