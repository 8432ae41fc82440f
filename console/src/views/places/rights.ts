// What acts on queues and tables, messages and entities need of a shared access signature. Source:
// docs/operations/queue.md and table.md, columns `sas` and `account sas`. Those of shares are among the
// files' acts.

import { rightText } from "../../components/rights";
import { lackedLetters, type Needed } from "../../protocol/rights";
import { currentSession } from "../../state/session";

const ACTS = {
  make: ["", "c", "cw"],
  remove: ["", "c", "d"],
  clear: ["", "o", "d"],
  put: ["a", "o", "a"],
  peek: ["r", "o", "r"],
  get: ["p", "o", "p"],
  updateMessage: ["u", "o", "u"],
  deleteMessage: ["p", "o", "p"],
  addEntity: ["a", "o", "a"],
  changeEntity: ["u", "o", "u"],
  deleteEntity: ["d", "o", "d"],
} as const satisfies Readonly<Record<string, Needed>>;

/** Return the text of the right that the sign-in lacks for this; "" if it lacks none that is known. */
export function lackingPlace(act: keyof typeof ACTS): string {
  return rightText(lackedLetters(currentSession().credential, ACTS[act]));
}
