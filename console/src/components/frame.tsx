// What stands around every view: the navigation, who is signed in, the theme, signing out.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { address, addressOf } from "../state/router";
import { account, session, signOut } from "../state/session";
import { toggleTheme } from "../state/theme";
import { texts } from "../texts";
import { VIEWS } from "../views";
import { Button } from "./controls";
import { Icon, Mark } from "./icons";
import { Toasts } from "./messages";

export function Frame({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const isSignedIn = session.value !== null;
  return (
    <div class={isSignedIn ? "frame" : "frame alone"}>
      <a class="skip" href="#main" onClick={skipToMain}>{texts.frame.skip}</a>
      <header class="bar">
        <span class="brand"><Mark />{texts.frame.product}</span>
        {isSignedIn && <Navigation />}
        <div class="bar-end">
          {isSignedIn && <Who />}
          <Button kind="quiet" onClick={toggleTheme}><Icon name="theme" /><span>{texts.frame.theme}</span></Button>
          {isSignedIn && <Button kind="quiet" onClick={() => { signOut(); }}><Icon name="out" /><span>{texts.frame.signOut}</span></Button>}
        </div>
      </header>
      <Main>{children}</Main>
      <Toasts />
    </div>
  );
}

function Navigation(): JSX.Element {
  return (
    <nav aria-label={texts.frame.navigation}>
      <ul>
        {VIEWS.map((view) => (
          <li key={view.name}>
            <a href={addressOf(view.name)} aria-current={address.value.view === view.name ? "page" : undefined}>
              <Icon name={view.icon} />
              <span>{view.title}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Who(): JSX.Element {
  const credential = session.value?.credential;
  const name = session.value?.who?.name ?? account.value;
  return (
    <span class="who">
      <span class="who-name" title={name}>{name}</span>
      <span class="muted">{credential ? texts.frame.kinds[credential.kind] : ""}</span>
    </span>
  );
}

/** The view. When another view is shown, its heading gets the focus, so that readers say its name. */
function Main({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const main = useRef<HTMLElement>(null);
  const shown = `${session.value ? "in" : "out"} ${address.value.view}`;
  const before = useRef(shown);
  useEffect(() => {
    if (before.current === shown) return;
    before.current = shown;
    main.current?.querySelector<HTMLElement>("h1")?.focus();
    main.current?.scrollTo(0, 0);
  }, [shown]);
  return <main id="main" ref={main} tabIndex={-1}>{children}</main>;
}

function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
