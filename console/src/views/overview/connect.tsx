// How a program connects: the connection string, where each service is, a short example for each SDK.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import type { ServicePort } from "../../api/documents";
import { Button } from "../../components/controls";
import { CopyButton, Panel } from "../../components/parts";
import { Snippets } from "../../components/snippets";
import { keyText } from "../../state/key_text";
import { account, server, session } from "../../state/session";
import { texts } from "../../texts";
import { EXAMPLES } from "./examples";

const words = texts.overview;
const MASK = "\u2022".repeat(12);

export function Connect(): JSX.Element {
  const services = server.value?.services ?? [];
  return (
    <div class="columns">
      <Panel title={words.connectionHeading}>
        {session.value?.credential.kind === "key" ? <ConnectionString services={services} /> : <p class="muted">{words.noKey}</p>}
        <Endpoints services={services} />
      </Panel>
      <Panel title={words.examplesHeading}>
        <p class="muted">{words.examplesHint}</p>
        <Snippets snippets={EXAMPLES} />
      </Panel>
    </div>
  );
}

function ConnectionString({ services }: { readonly services: readonly ServicePort[] }): JSX.Element {
  const isShown = useSignal(false);
  const text = (key: string): string => connectionString(account.value, key, services);
  return (
    <>
      <pre class="connection-string" tabIndex={0}>{text(isShown.value ? (keyText() ?? MASK) : MASK)}</pre>
      <div class="actions">
        <Button onClick={() => { isShown.value = !isShown.value; }}>{isShown.value ? words.hideKey : words.showKey}</Button>
        <CopyButton name={words.copyConnectionString} text={() => text(keyText() ?? "")} />
      </div>
    </>
  );
}

/** The connection string that every SDK takes, with each service's own port. */
export function connectionString(name: string, key: string, services: readonly ServicePort[]): string {
  const protocol = services[0]?.url.startsWith("https:") ? "https" : "http";
  const endpoints = services.map((one) => `${ENDPOINTS[one.name] ?? one.name}=${endpoint(one, name)};`);
  return `DefaultEndpointsProtocol=${protocol};AccountName=${name};AccountKey=${key};${endpoints.join("")}`;
}

const ENDPOINTS: Readonly<Record<string, string>> = {
  blob: "BlobEndpoint",
  queue: "QueueEndpoint",
  table: "TableEndpoint",
  file: "FileEndpoint",
};

function endpoint(service: ServicePort, name: string): string {
  return `${service.url.replace(/\/$/, "")}/${name}`;
}

function Endpoints({ services }: { readonly services: readonly ServicePort[] }): JSX.Element {
  return (
    <ul class="endpoints">
      {services.map((one) => (
        <li key={one.name}>
          <span>{words.services[one.name as keyof typeof words.services]}</span>
          <code>{endpoint(one, account.value)}</code>
        </li>
      ))}
    </ul>
  );
}
