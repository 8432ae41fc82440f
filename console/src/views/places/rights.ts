// What making, clearing and deleting a queue or table needs of a shared access signature. Source:
// docs/operations/queue.md and table.md, column `account sas`. Those of shares are among the files' acts.

import { rightText } from "../../components/rights";
import { lackedLetters, type Needed } from "../../protocol/rights";
import { currentSession } from "../../state/session";

const ACTS = {
  make: ["", "c", "cw"],
  remove: ["", "c", "d"],
  clear: ["", "o", "d"],
} as const satisfies Readonly<Record<string, Needed>>;

/** Return the text of the right that the sign-in lacks for this; "" if it lacks none that is known. */
export function lackingPlace(act: keyof typeof ACTS): string {
  return rightText(lackedLetters(currentSession().credential, ACTS[act]));
}
