// The operations of the Table service that the page uses. Source: "Table service REST API". Not
// here: the JSON of entities (entities.ts), signatures (requests.ts).

import type { Credential } from "./credentials";
import { type Entity, type EntityKey, entityJson, type NewEntity, readEntities, readEntity } from "./entities";
import { ServiceError } from "./errors";
import { type DataRequest, send } from "./requests";

export interface TableAt {
  readonly account: string;
  readonly table: string;
}

export interface TablePage {
  readonly rows: readonly string[];
  /** For the next page; "" after the last. */
  readonly next: string;
}

/** Where the next page of entities begins. */
export interface EntityMarker {
  readonly partitionKey: string;
  readonly rowKey: string;
}

export interface EntityPage {
  readonly entities: readonly Entity[];
  readonly next: EntityMarker | null;
}

export interface EntityQuery {
  /** OData's $filter; "" for all. */
  readonly filter: string;
  readonly from: EntityMarker | null;
  readonly top: number;
}

const JSON_TYPE = "application/json";
const ACCEPT = { accept: "application/json;odata=minimalmetadata" };
const NEXT = "x-ms-continuation-Next";

export async function listTables(
  credential: Credential,
  account: string,
  query: { readonly prefix: string; readonly marker: string; readonly top: number },
  signal?: AbortSignal,
): Promise<TablePage> {
  const { prefix, marker, top } = query;
  const parameters = { $top: top, $filter: prefix ? prefixFilter(prefix) : undefined, NextTableName: marker || undefined };
  const request = { method: "GET", service: "table", account, path: "/Tables", query: parameters, headers: ACCEPT } as const;
  const answer = await send(credential, signal ? { ...request, signal } : request);
  const document = (await answer.json()) as { readonly value?: readonly { readonly TableName?: unknown }[] };
  const rows = (document.value ?? []).map((one) => one.TableName).filter((one) => typeof one === "string");
  return { rows, next: answer.headers.get(`${NEXT}TableName`) ?? "" };
}

export async function createTable(credential: Credential, { account, table }: TableAt): Promise<void> {
  await send(credential, {
    method: "POST", service: "table", account, path: "/Tables", body: JSON.stringify({ TableName: table }),
    headers: { ...ACCEPT, "content-type": JSON_TYPE, prefer: "return-no-content" },
  });
}

export async function deleteTable(credential: Credential, { account, table }: TableAt): Promise<void> {
  await send(credential, { method: "DELETE", service: "table", account, path: `/Tables('${encodeURIComponent(table)}')`, headers: ACCEPT });
}

export async function queryEntities(credential: Credential, at: TableAt, query: EntityQuery, signal?: AbortSignal): Promise<EntityPage> {
  const { filter, from, top } = query;
  const parameters = {
    $top: top,
    $filter: filter || undefined,
    NextPartitionKey: from?.partitionKey,
    NextRowKey: from?.rowKey || undefined,
  };
  const request = { method: "GET", service: "table", account: at.account, path: `/${at.table}()`, query: parameters, headers: ACCEPT } as const;
  const answer = await send(credential, signal ? { ...request, signal } : request);
  const partitionKey = answer.headers.get(`${NEXT}PartitionKey`);
  const next = partitionKey === null ? null : { partitionKey, rowKey: answer.headers.get(`${NEXT}RowKey`) ?? "" };
  return { entities: readEntities(await answer.text()), next };
}

export async function getEntity(credential: Credential, at: TableAt, key: EntityKey): Promise<Entity | null> {
  try {
    return readEntity(await (await send(credential, requestOf(at, key, "GET"))).text());
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404 && error.code !== "TableNotFound") return null;
    throw error;
  }
}

export async function insertEntity(credential: Credential, at: TableAt, entity: NewEntity): Promise<void> {
  await send(credential, {
    method: "POST", service: "table", account: at.account, path: `/${at.table}`, body: entityJson(entity),
    headers: { ...ACCEPT, "content-type": JSON_TYPE, prefer: "return-no-content" },
  });
}

/**
 * Write an entity.
 *
 * Arguments: `how`: "merge" leaves properties that are not named; "replace" removes them.
 * `ifMatch`: the entity must be there, in this version; null: it need not be there at all.
 */
export async function writeEntity(
  credential: Credential,
  at: TableAt,
  entity: NewEntity,
  how: "merge" | "replace",
  ifMatch: string | null,
): Promise<void> {
  const request = requestOf(at, entity, how === "merge" ? "MERGE" : "PUT");
  const condition: Record<string, string> = ifMatch === null ? {} : { "if-match": ifMatch };
  await send(credential, { ...request, headers: { ...request.headers, ...condition, "content-type": JSON_TYPE }, body: entityJson(entity) });
}

export async function deleteEntity(credential: Credential, at: TableAt, key: EntityKey, ifMatch: string): Promise<void> {
  const request = requestOf(at, key, "DELETE");
  await send(credential, { ...request, headers: { ...request.headers, "if-match": ifMatch } });
}

/** Return whether a write was refused since the entity is no longer as it was. */
export function isStale(error: unknown): boolean {
  if (!(error instanceof ServiceError)) return false;
  return error.status === 412 || (error.status === 404 && error.code === "ResourceNotFound");
}

/** Return the path of an entity after its account: ' is doubled, and all else is percent-encoded. */
export function entityPath(table: string, { partitionKey, rowKey }: EntityKey): string {
  return `/${table}(PartitionKey='${quoted(partitionKey)}',RowKey='${quoted(rowKey)}')`;
}

function quoted(key: string): string {
  return encodeURIComponent(key.replaceAll("'", "''")).replaceAll("'", "%27");
}

function requestOf(at: TableAt, key: EntityKey, method: DataRequest["method"]): DataRequest {
  return { method, service: "table", account: at.account, path: entityPath(at.table, key), headers: ACCEPT };
}

// Names of tables compare without case; "{" follows the last letter that a name may have.
function prefixFilter(prefix: string): string {
  const text = prefix.replaceAll("'", "''");
  return `TableName ge '${text}' and TableName lt '${text}{'`;
}
