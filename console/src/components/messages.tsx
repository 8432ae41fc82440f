// What is announced: refusals where they belong, toasts over the page, empty states, missing rights.

import type { ComponentChildren, JSX } from "preact";

import { ServiceError } from "../protocol/errors";
import { dismiss, textOfError, toasts } from "../state/toasts";
import { texts } from "../texts";
import { Icon } from "./icons";

/** A refusal, announced at once; nothing without one. */
export function Alert({ error }: { readonly error: unknown }): JSX.Element {
  // The element is there before its text, since some readers announce only what changes.
  const text = error === null || error === undefined ? "" : typeof error === "string" ? error : textOfError(error);
  return <div role="alert" class={text ? "notice danger" : "empty-alert"}>{text}</div>;
}

/** What one should know, said without haste, with what can be done about it; nothing for "". */
export function Notice({ text, children }: { readonly text: string; readonly children: ComponentChildren }): JSX.Element {
  // Beside each other: what is left when the acts are gone is not where the focus should go.
  return (
    <>
      <div role="status" class={text ? "notice with-more" : "unseen"}>{text}</div>
      {text && <div class="notice more">{children}</div>}
    </>
  );
}

/** A view without anything yet: what it is for, and what to do first. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="muted">{children}</div>}
    </div>
  );
}

/** An error of a whole view: which credential it needs, or the server's words. */
export function Problem({ error }: { readonly error: unknown }): JSX.Element | null {
  if (!error) return null;
  const needs = error instanceof ServiceError ? error.needs : null;
  if (needs) return <Needs kind={needs} />;
  return <div class="notice danger" role="alert">{textOfError(error)}</div>;
}

/** What a sign-in may not see: the kind of credential that it needs. */
export function Needs({ kind }: { readonly kind: string }): JSX.Element {
  return <Empty title={texts.needs.title(kind)}>{texts.needs.remedy}</Empty>;
}

export function Toasts(): JSX.Element {
  const of = (kind: "status" | "alert"): JSX.Element[] =>
    toasts.value
      .filter((one) => one.kind === kind)
      .map((one) => (
        <div key={one.number} class={`toast ${kind}`}>
          <span>{one.text}</span>
          <button type="button" class="button quiet" aria-label={texts.dialogs.dismiss} onClick={() => { dismiss(one.number); }}>
            <Icon name="close" />
          </button>
        </div>
      ));
  return (
    <div class="toasts">
      <div role="status">{of("status")}</div>
      <div role="alert">{of("alert")}</div>
    </div>
  );
}
