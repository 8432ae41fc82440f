// The view Blobs: the containers of an account, one container, or one blob, as the address says.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button, Field } from "../../components/controls";
import { Needs } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { isForBlobs, reachOf } from "../../protocol/blob/rights";
import { address, addressOf, navigate } from "../../state/router";
import { account, currentSession } from "../../state/session";
import { texts } from "../../texts";
import { OneBlob } from "./blob";
import { OneContainer } from "./container";
import { Containers } from "./containers";

const words = texts.blobs;

export function Blobs(): JSX.Element {
  const { credential } = currentSession();
  return (
    <>
      <ViewHead title={words.title} />
      {isForBlobs(credential) ? <Shown /> : <Needs kind={words.otherService} />}
    </>
  );
}

function Shown(): JSX.Element {
  const { credential } = currentSession();
  const [named, container, blob] = address.value.names;
  const owner = named ?? account.value;
  const reach = credential.kind === "sas" ? reachOf(credential) : null;
  useEffect(() => {
    if (!reach || container !== undefined) return;
    navigate(addressOf("blobs", [owner, reach.container, ...(reach.blob ? [reach.blob] : [])]), true);
  }, [container]);
  if (!owner) return <ChooseAccount />;
  if (container === undefined) return reach ? <></> : <Containers key={owner} place={{ credential, account: owner }} />;
  const place = { credential, account: owner, container };
  if (blob === undefined) return <OneContainer key={`${owner}/${container}`} place={place} />;
  const { snapshot, version } = address.value.query;
  const state = { ...(snapshot ? { snapshot } : {}), ...(version ? { version } : {}) };
  return <OneBlob key={JSON.stringify([owner, container, blob, state])} place={{ ...place, blob, ...state }} />;
}

function ChooseAccount(): JSX.Element {
  const typed = useSignal("");
  const show = (event: Event): void => {
    event.preventDefault();
    if (typed.value) navigate(addressOf("blobs", [typed.value]));
  };
  return (
    <form class="card" onSubmit={show}>
      <p>{words.noAccount}</p>
      <Field label={words.account} value={typed.value} onInput={(value) => { typed.value = value; }} code />
      <div class="actions"><Button type="submit" kind="primary">{words.show}</Button></div>
    </form>
  );
}
