// The addresses of this view, the way up from each, and what a sign-in may not do here.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { Button } from "../../components/controls";
import { Empty } from "../../components/messages";
import type { BlobPlace, ContainerPlace } from "../../protocol/blob/place";
import { type Act, missingRight } from "../../protocol/blob/rights";
import { addressOf } from "../../state/router";
import { currentSession } from "../../state/session";
import { texts } from "../../texts";

const words = texts.blobs;

export interface Crumb {
  readonly text: string;
  readonly href: string;
}

/** Where one is; the last name is the heading, and takes the focus when one comes here. */
export function Crumbs({ crumbs, last, suffix }: { readonly crumbs: readonly Crumb[]; readonly last: string; readonly suffix?: string }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => { heading.current?.focus(); }, [last]);
  return (
    <div class="place">
      <nav aria-label={words.place}>
        <ol class="crumbs">
          {crumbs.map((one) => <li key={one.href}><a href={one.href}>{one.text}</a></li>)}
        </ol>
      </nav>
      <h2 ref={heading} tabIndex={-1}>{last}{suffix && <span class="tag">{suffix}</span>}</h2>
    </div>
  );
}

/** Return the links to the containers, the container, and the folders above a blob or prefix. */
export function crumbsAbove(place: ContainerPlace, path: string): Crumb[] {
  const folders = path.split("/").slice(0, -1);
  const above = folders.map((name, at) => ({ text: `${name}/`, href: containerAddress(place, { prefix: `${folders.slice(0, at + 1).join("/")}/` }) }));
  return [
    { text: place.account, href: addressOf("blobs", [place.account]) },
    { text: place.container, href: containerAddress(place) },
    ...above,
  ];
}

export function containerAddress(place: ContainerPlace, query: Readonly<Record<string, string>> = {}): string {
  return addressOf("blobs", [place.account, place.container], query);
}

export function blobAddress(place: BlobPlace, query: Readonly<Record<string, string>> = {}): string {
  const state = { snapshot: place.snapshot ?? "", version: place.version ?? "" };
  return addressOf("blobs", [place.account, place.container, place.blob], { ...state, ...query });
}

/** Return the text of the right that the sign-in lacks for this; "" if it lacks none that is known. */
export function lacking(act: Act): string {
  const letters = missingRight(currentSession().credential, act);
  if (letters === null) return "";
  if (letters === "key") return words.rights.key;
  return [...letters].map((one) => words.rights[one as keyof typeof words.rights]).join(words.or);
}

/** In place of a part of the view that the sign-in may not see. */
export function Lacks({ right }: { readonly right: string }): JSX.Element {
  return <Empty title={words.missing(right)}>{words.missingRemedy}</Empty>;
}

export interface ActButtonProps {
  readonly act: Act;
  readonly text: string;
  readonly name?: string;
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  readonly disabled?: boolean;
  readonly onClick: () => void;
}

/** A button that is off, and says why, where the sign-in lacks the right for it. */
export function ActButton({ act, text, name, kind = "plain", disabled = false, onClick }: ActButtonProps): JSX.Element {
  const right = lacking(act);
  return (
    <span class="act" title={right ? words.needsRight(right) : undefined}>
      <Button kind={kind} disabled={disabled || right !== ""} onClick={onClick} {...(name ? { name } : {})}>{text}</Button>
    </span>
  );
}
