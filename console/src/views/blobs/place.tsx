// The addresses of this view, the way up from each, and what a sign-in may not do here.

import type { JSX } from "preact";

import type { Crumb } from "../../components/crumbs";
import { RightButton, type RightButtonProps, rightText } from "../../components/rights";
import type { BlobPlace, ContainerPlace } from "../../protocol/blob/place";
import { type Act, missingRight } from "../../protocol/blob/rights";
import { addressOf } from "../../state/router";
import { currentSession } from "../../state/session";

export { type Crumb, Crumbs } from "../../components/crumbs";
export { Lacks } from "../../components/rights";

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
  return rightText(missingRight(currentSession().credential, act));
}

export function ActButton({ act, ...button }: Omit<RightButtonProps, "right"> & { readonly act: Act }): JSX.Element {
  return <RightButton right={lacking(act)} {...button} />;
}
