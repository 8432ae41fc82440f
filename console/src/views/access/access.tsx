// Access: who may come in. Accounts and roles, a signature explained, stored policies, and the clock
// of a test server.

import type { JSX } from "preact";

import type { AccessOverview } from "../../api/documents";
import { Button } from "../../components/controls";
import { Problem } from "../../components/messages";
import { ViewHead } from "../../components/parts";
import { askApi } from "../../protocol/requests";
import { useLoaded } from "../../state/loaded";
import { accountQuery, currentSession, server } from "../../state/session";
import { texts } from "../../texts";
import { Accounts } from "./accounts";
import { Explain } from "./explain";
import { Roles } from "./roles";
import { StoredPolicies } from "./stored_policies";
import { TestClock } from "./test_clock";

const words = texts.access;

export function Access(): JSX.Element {
  const facts = useLoaded("access", (signal) => askApi<AccessOverview>(currentSession().credential, "access", accountQuery(), signal));
  const found = facts.value.value;
  return (
    <div class="access">
      <ViewHead title={words.title} lead={words.lead}>
        <Button onClick={facts.reload}>{words.reload}</Button>
      </ViewHead>
      <Problem error={facts.error.value} />
      {found && <Accounts facts={found} />}
      {found && <Roles facts={found} />}
      <Explain />
      <StoredPolicies />
      {server.value?.has_test_clock && <TestClock />}
    </div>
  );
}
