// Who is signed in. Everything personal that the page keeps hangs on `session`: at sign-out it is
// replaced, and the views, which are made anew, hold nothing of before.

import { computed, signal } from "@preact/signals";

import type { Session as ServerFacts, Who } from "../api/documents";
import type { Credential } from "../protocol/credentials";
import { forgetKeyText } from "./key_text";

export interface Session {
  readonly credential: Credential;
  /** What the server says of an account's key or a token; null for a SAS. */
  readonly who: Who | null;
}

/** What the server says without a signature; null until it has answered. */
export const server = signal<ServerFacts | null>(null);
export const session = signal<Session | null>(null);
/** Why the page signed out by itself; shown above the sign-in. */
export const signedOutBecause = signal<"idle" | null>(null);

/** The account whose data is shown first; "" if a token names none. */
export const account = computed(() => accountOf(session.value));

const onSignOut = new Set<() => void>();

/** Run `forget` at each sign-out: for modules that keep something personal outside of `session`. */
export function atSignOut(forget: () => void): void {
  onSignOut.add(forget);
}

export function signOut(because: "idle" | null = null): void {
  forgetKeyText();
  for (const forget of onSignOut) forget();
  signedOutBecause.value = because;
  session.value = null;
}

/**
 * The parameter `account` of the read API. A key says itself whose it is; a token names nobody.
 */
export function accountQuery(): { readonly account?: string } {
  const one = session.value;
  return one?.credential.kind === "bearer" && one.who?.account ? { account: one.who.account } : {};
}

/** The session of a view that is shown only to who is signed in. Raises: Error otherwise. */
export function currentSession(): Session {
  if (!session.value) throw new Error("nobody is signed in");
  return session.value;
}

function accountOf(one: Session | null): string {
  if (!one) return "";
  return one.credential.kind === "bearer" ? (one.who?.account ?? "") : one.credential.account;
}
