// The link to the issuer of tokens, where the server names one.

import type { JSX } from "preact";

import { server } from "../../state/session";
import { texts } from "../../texts";

export function IssuerLink(): JSX.Element | null {
  const issuer = server.value?.issuer;
  if (!issuer) return null;
  return <div class="card"><a class="button" href="/">{texts.signIn.withIssuer(issuer.name)}</a></div>;
}
