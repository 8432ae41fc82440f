// Accounts: how many keys each has, and the commands that change them. The page changes no key.

import type { JSX } from "preact";

import type { AccessOverview, AccountKeys } from "../../api/documents";
import { Panel } from "../../components/parts";
import { texts } from "../../texts";
import { Command } from "./command";

const words = texts.access;

export function Accounts({ facts }: { readonly facts: AccessOverview }): JSX.Element | null {
  const shown = facts.accounts.length > 0 ? facts.accounts : facts.account ? [facts.account] : [];
  if (shown.length === 0) return null;
  return (
    <Panel title={words.accountsHeading}>
      <p class="hint">{words.accountsHint}</p>
      <ul class="things">
        {shown.map((one) => <Account key={one.name} account={one} flag={facts.accounts_flag} isOwn={one.name === facts.account?.name} />)}
      </ul>
    </Panel>
  );
}

function Account({ account, flag, isOwn }: { readonly account: AccountKeys; readonly flag: string; readonly isOwn: boolean }): JSX.Element {
  const isDevelopment = account.source === "development";
  return (
    <li class="thing">
      <div class="thing-head">
        <strong class="thing-name">{account.name}</strong>
        <span class="muted">{words.keys(account.keys)}</span>
        {isOwn && <span class="tag">{words.yours}</span>}
        {account.is_operator && <span class="tag">{words.operator}</span>}
        {account.has_known_key && <span class="tag warning">{words.knownKey}</span>}
      </div>
      {account.has_known_key && <p class="muted">{isDevelopment ? words.development : words.knownKeyHint}</p>}
      {account.source === "start" && <p class="muted">{words.givenAtStart}</p>}
      {account.rotate_command && (
        <Command does={isDevelopment ? words.doesAdd : words.doesRotate(account.name)} command={account.rotate_command} flag={flag} />
      )}
      {account.remove_command && (
        <Command does={words.doesRemoveOld(account.name)} command={account.remove_command} flag={flag} />
      )}
    </li>
  );
}
