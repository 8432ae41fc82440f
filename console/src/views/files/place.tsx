// The addresses of this view, the way up from each, and what a sign-in may not do here.

import type { JSX } from "preact";

import { type Crumb, Crumbs } from "../../components/crumbs";
import { RightButton, type RightButtonProps, rightText } from "../../components/rights";
import type { PathPlace, SharePlace } from "../../protocol/files/place";
import { type FileAct, missingFileRight } from "../../protocol/files/rights";
import { addressOf } from "../../state/router";
import { currentSession } from "../../state/session";

/** In the address of a file, so that it need not be asked for what it is. */
export const FILE = { kind: "file" } as const;

type More = Readonly<Record<string, string>>;

export function shareAddress(place: SharePlace, query: More = {}): string {
  return addressOf("files", [place.account, place.share], { snapshot: place.snapshot ?? "", ...query });
}

export function pathAddress(place: PathPlace, query: More = {}): string {
  return addressOf("files", [place.account, place.share, ...place.path], { snapshot: place.snapshot ?? "", ...query });
}

/** Return the links to the shares, the share, and the directories above a path. */
function crumbsAbove(place: PathPlace): Crumb[] {
  const above = place.path.slice(0, -1);
  return [
    { text: place.account, href: addressOf("files", [place.account]) },
    ...(place.path.length ? [{ text: place.share, href: shareAddress(place) }] : []),
    ...above.map((name, at) => ({ text: `${name}/`, href: pathAddress({ ...place, path: above.slice(0, at + 1) }) })),
  ];
}

/** Where one is in a share; its root has the share's name. */
export function PathCrumbs({ place, isDirectory }: { readonly place: PathPlace; readonly isDirectory: boolean }): JSX.Element {
  const name = place.path.at(-1);
  const last = name === undefined ? place.share : isDirectory ? `${name}/` : name;
  return <Crumbs crumbs={crumbsAbove(place)} last={last} {...(place.snapshot ? { suffix: place.snapshot } : {})} />;
}

/** Return the text of the right that the sign-in lacks for this; "" if it lacks none that is known. */
export function lacking(act: FileAct): string {
  return rightText(missingFileRight(currentSession().credential, act));
}

export function FileActButton({ act, ...button }: Omit<RightButtonProps, "right"> & { readonly act: FileAct }): JSX.Element {
  return <RightButton right={lacking(act)} {...button} />;
}
