// What views are made of: their head, panels, times, names and values to copy.

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

import { localTime, utcTime } from "../state/times";
import { complain, say } from "../state/toasts";
import { texts } from "../texts";
import { Button } from "./controls";
import { Icon } from "./icons";

export interface ViewHeadProps {
  /** The view's name: the only heading of level 1. */
  readonly title: string;
  readonly lead?: ComponentChildren;
  /** Buttons and fields of the whole view. */
  readonly children?: ComponentChildren;
}

export function ViewHead({ title, lead, children }: ViewHeadProps): JSX.Element {
  return (
    <header class="view-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {lead && <p class="muted">{lead}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}

export interface PanelProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly class?: string;
}

export function Panel({ title, children, actions, class: more = "" }: PanelProps): JSX.Element {
  const id = useId();
  return (
    <section class={`panel ${more}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

/** A time in the local zone; UTC is in its title. `at`: RFC 3339. */
export function Time({ at }: { readonly at: string }): JSX.Element {
  return <time dateTime={at} title={utcTime(at)}>{localTime(at)}</time>;
}

export async function copyText(text: string, said: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(said);
  } catch {
    complain(new Error(texts.errors.clipboard));
  }
}

/** Copies a text that is made only when it is asked for; `name` is "Copy ...". */
export function CopyButton({ name, text }: { readonly name: string; readonly text: () => string }): JSX.Element {
  return (
    <Button kind="quiet" onClick={() => void copyText(text(), texts.dialogs.copied)}>
      <Icon name="copy" />
      <span>{name}</span>
    </Button>
  );
}

export function Facts({ rows }: { readonly rows: readonly (readonly [name: string, value: ComponentChildren])[] }): JSX.Element {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
