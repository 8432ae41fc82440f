// What the views of one service have in common: the account, and what a sign-in lacks.

import type { JSX } from "preact";

import { Empty } from "../components/messages";
import { ViewHead } from "../components/parts";
import type { Credential, Service } from "../protocol/credentials";
import { missingRight } from "../protocol/rights";
import { addressOf } from "../state/router";
import { texts } from "../texts";

const words = texts.data;

export interface ServiceViewProps {
  readonly title: string;
  readonly service: Service;
  /** Letters of `sp` without which nothing can be shown. */
  readonly rights: string;
  readonly credential: Credential;
}

/** Return what is shown in place of a view that the sign-in cannot use; null: it can. */
export function lacking({ title, service, rights, credential }: ServiceViewProps): JSX.Element | null {
  const missing = missingRight(credential, service, rights);
  if (missing === null) return null;
  const serviceName = words.services[service];
  return (
    <>
      <ViewHead title={title} />
      <Empty title={missing === "service" ? words.otherService(serviceName) : words.missingRight(missing, words.rights[missing] ?? missing)}>
        {texts.needs.remedy}
      </Empty>
    </>
  );
}

/** The way back from one thing to the list of all. */
export function Crumbs({ view, all, account, name }: { readonly view: string; readonly all: string; readonly account: string; readonly name: string }): JSX.Element {
  return (
    <div class="crumbs">
      <a href={addressOf(view, [account])}>{all}</a>
      <span class="muted" aria-hidden="true">/</span>
      <h2><code>{name}</code></h2>
    </div>
  );
}
