// The sign-in. It stands in place of every view until somebody is signed in; the address stays.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { Session } from "../../api/documents";
import { Button, Field } from "../../components/controls";
import { Alert, Empty } from "../../components/messages";
import { askApi } from "../../protocol/requests";
import { repeat } from "../../state/live";
import { server, signedOutBecause } from "../../state/session";
import { partsOfConnectionString, signInWithKey, signInWithSas } from "../../state/sign_in";
import { texts } from "../../texts";
import { IssuerLink } from "./issuer";

export function SignIn(): JSX.Element {
  const error = useServer();
  useEffect(() => {
    document.title = texts.frame.windowTitle(texts.signIn.title);
  }, []);
  if (!isSecureContext) return <Empty title={texts.signIn.insecureTitle}>{texts.signIn.insecure}</Empty>;
  return (
    <div class="sign-in">
      <h1 tabIndex={-1}>{texts.signIn.title}</h1>
      <p class="muted">{texts.signIn.lead}</p>
      {signedOutBecause.value === "idle" && <p class="notice" role="status">{texts.signIn.idle}</p>}
      <Alert error={error.value} />
      <Development />
      <KeyForm />
      <SasForm />
      {server.value?.issuer && <IssuerLink issuer={server.value.issuer} />}
      {server.value && <p class="muted foot">{texts.signIn.version(server.value.version)}</p>}
    </div>
  );
}

/** Ask what the server offers, until it answers. */
function useServer(): { readonly value: unknown } {
  const error = useSignal<unknown>(null);
  useEffect(() => {
    const end = repeat(async (signal) => {
      server.value = await askApi<Session>(null, "session", {}, signal);
      error.value = null;
      end();
    }, 1_000, (problem) => { error.value = problem; });
    return end;
  }, []);
  return error;
}

function Development(): JSX.Element | null {
  const error = useSignal<unknown>(null);
  const offered = server.value?.development_account;
  if (!offered) return null;
  const enter = (): void => {
    signInWithKey(offered.name, offered.key).catch((problem: unknown) => { error.value = problem; });
  };
  return (
    <div class="card">
      <Button kind="primary" onClick={enter}>{texts.signIn.development}</Button>
      <p class="hint">{texts.signIn.developmentHint(offered.name)}</p>
      <Alert error={error.value} />
    </div>
  );
}

function KeyForm(): JSX.Element {
  const account = useSignal("");
  const key = useSignal("");
  const takeKey = (text: string): void => {
    const parts = partsOfConnectionString(text);
    if (parts) account.value = parts.account;
    key.value = parts?.key ?? text;
  };
  return (
    <SignInForm heading={texts.signIn.keyHeading} act={() => signInWithKey(account.value.trim(), key.value.trim())}>
      <Field label={texts.signIn.account} value={account.value} onInput={(value) => { account.value = value; }} required code />
      <Field label={texts.signIn.key} type="password" value={key.value} onInput={takeKey} hint={texts.signIn.keyHint} required code />
    </SignInForm>
  );
}

function SasForm(): JSX.Element {
  const url = useSignal("");
  return (
    <SignInForm heading={texts.signIn.sasHeading} act={() => signInWithSas(url.value)}>
      <Field label={texts.signIn.sasUrl} type="password" value={url.value} onInput={(value) => { url.value = value; }} hint={texts.signIn.sasHint} required code />
    </SignInForm>
  );
}

interface SignInFormProps {
  readonly heading: string;
  readonly act: () => Promise<void>;
  readonly children: JSX.Element | JSX.Element[];
}

function SignInForm({ heading, act, children }: SignInFormProps): JSX.Element {
  const error = useSignal<unknown>(null);
  const isBusy = useSignal(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    error.value = null;
    isBusy.value = true;
    act()
      .catch((problem: unknown) => { error.value = problem; })
      .finally(() => { isBusy.value = false; });
  };
  return (
    <form class="card" onSubmit={submit}>
      <h2>{heading}</h2>
      {children}
      <Alert error={error.value} />
      <div class="actions">
        <Button type="submit" kind={server.value?.development_account ? "plain" : "primary"} disabled={isBusy.value}>{texts.signIn.signIn}</Button>
      </div>
    </form>
  );
}
