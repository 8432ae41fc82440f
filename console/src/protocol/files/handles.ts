// The handles that SMB clients have open, as REST lists and closes them. Source: "List Handles",
// "Force Close Handles". What else is known of an open comes from the read API (`files/opens`).

import { timeOf } from "../shared/headers";
import { childOf, childrenOf, nameOf, parseXml, textOf } from "../shared/xml";
import { askFile, type PathPlace } from "./place";

const PAGE_HANDLES = 500;

export interface HandleRow {
  /** 63 bits: a text, since numbers of JavaScript have 53. */
  readonly id: string;
  readonly path: string;
  readonly session: string;
  readonly client: string;
  readonly opened: string;
  readonly access: readonly string[];
}

export interface HandleList {
  readonly rows: readonly HandleRow[];
  /** Whether there are more than one answer has. */
  readonly isMore: boolean;
}

/** List the handles of a file or directory; `isRecursive`: those below a directory too. */
export async function listHandles(place: PathPlace, isRecursive: boolean, signal?: AbortSignal): Promise<HandleList> {
  const headers: Record<string, string> = isRecursive ? { "x-ms-recursive": "true" } : {};
  const answer = await askFile(place, "GET", { query: { comp: "listhandles", maxresults: PAGE_HANDLES }, headers, signal });
  return readHandles(await answer.text());
}

export function readHandles(xml: string): HandleList {
  const root = parseXml(xml);
  const rows = childrenOf(childOf(root, "Entries"), "Handle").map(
    (one): HandleRow => ({
      id: textOf(one, "HandleId"),
      path: nameOf(one, "Path"),
      session: textOf(one, "SessionId"),
      client: textOf(one, "ClientIp"),
      opened: timeOf(textOf(one, "OpenTime")),
      access: childrenOf(childOf(one, "AccessRightList"), "AccessRight").map((right) => right.textContent ?? ""),
    }),
  );
  return { rows, isMore: textOf(root, "NextMarker") !== "" };
}

/** Close a handle by force. Return whether it was still open. */
export async function closeHandle(place: PathPlace, id: string): Promise<boolean> {
  const answer = await askFile(place, "PUT", { query: { comp: "forceclosehandles" }, headers: { "x-ms-handle-id": id } });
  return Number(answer.headers.get("x-ms-number-of-handles-closed") ?? 0) > 0;
}
