// Signing in at an issuer: the code flow with PKCE. The page navigates to the issuer and comes back
// with a code, which the server exchanges. What must outlive the way is in sessionStorage from
// leaving to returning, and deleted first of all then. Source: OpenID Connect Core, RFC 7636.

import type { ExchangedToken, SignInIssuer } from "../api/documents";
import { postApi } from "../protocol/requests";
import { texts } from "../texts";
import { navigate } from "./router";
import { signInWithToken } from "./sign_in";

const STORED_AS = "strongroom-leaving";

interface Leaving {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** The address that is shown after the return. */
  readonly address: string;
}

export async function leave(issuer: SignInIssuer): Promise<void> {
  const leaving = { state: random(), nonce: random(), verifier: random(), address: `${location.pathname}${location.search}` };
  sessionStorage.setItem(STORED_AS, JSON.stringify(leaving));
  location.assign(await authorizationUrl(issuer, leaving));
}

export async function authorizationUrl(issuer: SignInIssuer, leaving: Leaving): Promise<string> {
  const url = new URL(issuer.authorization_endpoint);
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(leaving.verifier));
  const parameters = {
    response_type: "code",
    client_id: issuer.client_id,
    redirect_uri: redirectUri(),
    scope: issuer.scope,
    state: leaving.state,
    nonce: leaving.nonce,
    code_challenge: base64url(new Uint8Array(hash)),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether this address is the return from an issuer. */
export function isReturn(): boolean {
  const query = new URLSearchParams(location.search);
  return location.pathname === "/" && query.has("state") && (query.has("code") || query.has("error"));
}

/** Sign in with what the issuer gave. The address is cleaned first. Raises: Error, ServiceError. */
export async function finishReturn(): Promise<void> {
  const query = new URLSearchParams(location.search);
  const stored = sessionStorage.getItem(STORED_AS);
  sessionStorage.removeItem(STORED_AS);
  const leaving = stored ? (JSON.parse(stored) as Leaving) : null;
  const isAsked = leaving !== null && query.get("state") === leaving.state;
  navigate(isAsked ? leaving.address : "/", true);
  if (!isAsked) throw new Error(texts.signIn.issuerUnasked);
  const refusal = query.get("error");
  if (refusal) throw new Error(texts.signIn.issuerRefused(query.get("error_description") ?? refusal));
  const content = { code: query.get("code"), verifier: leaving.verifier, redirect_uri: redirectUri() };
  const given = await postApi<ExchangedToken>("tokens", content);
  // An issuer need not give an id_token: its scope decides. The access token alone counts then, and the server checks it.
  if (given.id_token && nonceOf(given.id_token) !== leaving.nonce) throw new Error(texts.signIn.issuerUnasked);
  await signInWithToken(given.access_token);
}

function redirectUri(): string {
  return `${location.origin}/`;
}

/** Return the nonce of an id_token; null if it has none, or is none. */
function nonceOf(token: string): unknown {
  try {
    const payload = (token.split(".")[1] ?? "").replace(/-/g, "+").replace(/_/g, "/");
    return (JSON.parse(atob(payload)) as Record<string, unknown>)["nonce"] ?? null;
  } catch {
    return null;
  }
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
