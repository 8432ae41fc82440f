// Leases of blobs and containers, of files and shares, and the ids of those that this page acquired.

import { signal } from "@preact/signals";

import { atSignOut } from "../../state/session";
import { askBlob, askContainer, type BlobPlace, type ContainerPlace } from "../blob/place";
import { askFile, askShare, pathText, type PathPlace, type SharePlace } from "../files/place";

export interface HeldLease {
  readonly id: string;
  /** -1: it has no end. */
  readonly durationS: number;
  /** When it ends, in milliseconds since 1970 by this computer; null: never. */
  readonly endsMs: number | null;
}

export type LeasePlace = ContainerPlace | BlobPlace | SharePlace | PathPlace;

/** Whether a lease of it can have an end; then it can be renewed. Leases of files have none. */
export function canEnd(place: LeasePlace): boolean {
  return !("path" in place);
}

export function leasedName(place: LeasePlace): string {
  if ("path" in place) return pathText(place.path);
  if ("share" in place) return place.share;
  return "blob" in place ? place.blob : place.container;
}

const held = signal<ReadonlyMap<string, HeldLease>>(new Map());

atSignOut(() => {
  held.value = new Map();
});

/** Return the lease that this page holds, as far as it knows. */
export function heldLease(place: LeasePlace): HeldLease | undefined {
  return held.value.get(keyOf(place));
}

/** Return the id to send with writes; undefined without a lease of this page. */
export function heldId(place: LeasePlace): string | undefined {
  return heldLease(place)?.id;
}

/** Acquire a lease for 15 to 60 seconds, or -1 for no end; of a file, -1. */
export async function acquireLease(place: LeasePlace, durationS: number): Promise<void> {
  const asked = Date.now();
  const answer = await act(place, { "x-ms-lease-action": "acquire", "x-ms-lease-duration": String(durationS) });
  keep(place, { id: answer.headers.get("x-ms-lease-id") ?? "", durationS, endsMs: endOf(durationS, asked) });
}

export async function renewLease(place: LeasePlace, lease: HeldLease): Promise<void> {
  const asked = Date.now();
  await act(place, { "x-ms-lease-action": "renew", "x-ms-lease-id": lease.id });
  keep(place, { ...lease, endsMs: endOf(lease.durationS, asked) });
}

export async function releaseLease(place: LeasePlace, id: string): Promise<void> {
  await act(place, { "x-ms-lease-action": "release", "x-ms-lease-id": id });
  forgetLease(place);
}

/** Break a lease at once, whoever holds it. */
export async function breakLease(place: LeasePlace): Promise<void> {
  await act(place, { "x-ms-lease-action": "break", ...(canEnd(place) ? { "x-ms-lease-break-period": "0" } : {}) });
  forgetLease(place);
}

/** Forget an id that is not the lease's any more: another broke it, or it ended. */
export function forgetLease(place: LeasePlace): void {
  const left = new Map(held.value);
  if (left.delete(keyOf(place))) held.value = left;
}

/** What is leased has another name now; a lease of what had that name has ended. */
export function moveLease(from: LeasePlace, to: LeasePlace): void {
  const lease = heldLease(from);
  forgetLease(from);
  forgetLease(to);
  if (lease) keep(to, lease);
}

function keep(place: LeasePlace, lease: HeldLease): void {
  held.value = new Map(held.value).set(keyOf(place), lease);
}

// From when it was asked for: the server counts from later, so the page never shows too much.
function endOf(durationS: number, askedMs: number): number | null {
  return durationS < 0 ? null : askedMs + durationS * 1000;
}

function act(place: LeasePlace, headers: Record<string, string>): Promise<Response> {
  const asked = { query: { comp: "lease" }, headers };
  if ("path" in place) return askFile(place, "PUT", asked);
  if ("share" in place) return askShare(place, "PUT", asked);
  return "blob" in place ? askBlob(place, "PUT", asked) : askContainer(place, "PUT", asked);
}

function keyOf(place: LeasePlace): string {
  const service = "share" in place ? "file" : "blob";
  const whole = "share" in place ? place.share : place.container;
  const isPart = "blob" in place || "path" in place;
  return JSON.stringify([service, place.account, whole, isPart ? leasedName(place) : null]);
}
