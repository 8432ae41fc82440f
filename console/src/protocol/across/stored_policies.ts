// Stored access policies of containers, queues, tables and shares, read by Get ACL. Source: "Define a
// stored access policy". Not here: their change (protocol/blob/containers.ts).

import { policiesOf, type StoredPolicy } from "../blob/containers";
import type { Credential, Service } from "../credentials";
import { listQueues } from "../queues";
import { pathOf, type Query, send } from "../requests";
import { childOf, childrenOf, nameOf, parseXml, textOf } from "../shared/xml";
import { listTables } from "../tables";

export interface PolicyPlace {
  readonly service: Service;
  readonly account: string;
  /** Of the container, queue, table or share. */
  readonly name: string;
}

export interface PlacesPage {
  readonly rows: readonly string[];
  /** For the next page; "" after the last. */
  readonly next: string;
}

// Each place of a page costs a request.
const PAGE_PLACES = 50;

const ACL: Readonly<Record<Service, Query>> = {
  blob: { restype: "container", comp: "acl" },
  queue: { comp: "acl" },
  table: { comp: "acl" },
  file: { restype: "share", comp: "acl" },
};

/** The elements of a list: of containers, and of shares. */
const LISTED = { blob: ["Containers", "Container"], file: ["Shares", "Share"] } as const;

/** Return the containers, queues, tables or shares of an account, a page at a time. */
export async function listPlaces(credential: Credential, service: Service, account: string, marker: string, signal: AbortSignal): Promise<PlacesPage> {
  if (service === "queue") return listQueues(credential, account, { prefix: "", marker, maxresults: PAGE_PLACES }, signal);
  if (service === "table") return listTables(credential, account, { prefix: "", marker, top: PAGE_PLACES }, signal);
  const query = { comp: "list", maxresults: PAGE_PLACES, marker: marker || undefined };
  const answer = await send(credential, { method: "GET", service, account, path: "/", query, signal });
  const root = parseXml(await answer.text());
  const [all, one] = LISTED[service];
  return { rows: childrenOf(childOf(root, all), one).map((element) => nameOf(element)), next: textOf(root, "NextMarker") };
}

export async function readPolicies(credential: Credential, { service, account, name }: PolicyPlace, signal?: AbortSignal): Promise<readonly StoredPolicy[]> {
  const request = { method: "GET", service, account, path: pathOf(name), query: ACL[service] } as const;
  const answer = await send(credential, signal ? { ...request, signal } : request);
  return policiesOf(parseXml(await answer.text()));
}
