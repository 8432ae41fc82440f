// The link to the issuer of tokens, where the server names one, and the return from there.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { SignInIssuer } from "../../api/documents";
import { Alert } from "../../components/messages";
import { finishReturn, isReturn, leave } from "../../state/oidc";
import { texts } from "../../texts";

export function IssuerLink({ issuer }: { readonly issuer: SignInIssuer }): JSX.Element {
  const error = useSignal<unknown>(null);
  const show = (problem: unknown): void => { error.value = problem; };
  useEffect(() => {
    if (isReturn()) finishReturn().catch(show);
  }, []);
  const go = (event: MouseEvent): void => {
    event.preventDefault();
    leave(issuer).catch(show);
  };
  return (
    <div class="card">
      <a class="button" href={issuer.authorization_endpoint} rel="noopener" onClick={go}>{texts.signIn.withIssuer(issuer.name)}</a>
      <Alert error={error.value} />
    </div>
  );
}
