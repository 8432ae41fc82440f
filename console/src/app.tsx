// Which view is shown: the sign-in without a session, else the view of the address.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Frame } from "./components/frame";
import { Needs } from "./components/messages";
import { ViewHead } from "./components/parts";
import { isDownloading } from "./state/downloads";
import { watchIdle } from "./state/idle";
import { address, navigate } from "./state/router";
import { server, session, signOut } from "./state/session";
import { isUploading } from "./state/uploads";
import { texts } from "./texts";
import { VIEWS, viewNamed } from "./views";
import { SignIn } from "./views/signin/signin";

export function App(): JSX.Element {
  const idleMinutes = server.value?.idle_minutes;
  const isSignedIn = session.value !== null;
  useEffect(() => {
    if (!isSignedIn || !idleMinutes) return undefined;
    return watchIdle(idleMinutes, () => { signOut("idle"); }, Date.now, () => isUploading() || isDownloading());
  }, [isSignedIn, idleMinutes]);
  return <Frame>{isSignedIn ? <CurrentView /> : <SignIn />}</Frame>;
}

function CurrentView(): JSX.Element {
  const name = address.value.view;
  const view = viewNamed(name);
  const home = VIEWS[0]?.name ?? "";
  useEffect(() => {
    if (name === "") navigate(`/${home}`, true);
  }, [name]);
  useEffect(() => {
    document.title = view ? texts.frame.windowTitle(view.title) : texts.frame.product;
  }, [view]);
  if (name === "") return <></>;
  if (!view) return <ViewHead title={texts.frame.unknownTitle} lead={texts.frame.unknown} />;
  const kind = session.value?.credential.kind ?? "key";
  if (!view.for.includes(kind)) {
    return (
      <>
        <ViewHead title={view.title} />
        <Needs kind={texts.needs.accountKey} />
      </>
    );
  }
  const Component = view.component;
  return <Component key={view.name} />;
}
