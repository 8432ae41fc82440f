// One container: its properties, who may read without a signature, its stored policies.

import { metadataOf, type Pairs, timeOf } from "../shared/headers";
import { childOf, childrenOf, escapeXml, parseXml, textOf } from "../shared/xml";
import { type AccountPlace, askContainer, type ContainerPlace } from "./place";

export interface ContainerProperties {
  readonly modified: string;
  readonly etag: string;
  readonly leaseState: string;
  readonly leaseDuration: string;
  readonly hasPolicy: boolean;
  readonly hasHold: boolean;
  readonly isVersionLevel: boolean;
  readonly metadata: Pairs;
}

export interface StoredPolicy {
  readonly id: string;
  readonly start: string;
  readonly expiry: string;
  readonly rights: string;
}

export interface ContainerAccess {
  /** "container", "blob", or "" for nobody. */
  readonly level: string;
  readonly policies: readonly StoredPolicy[];
}

export async function createContainer(place: ContainerPlace): Promise<void> {
  await askContainer(place, "PUT");
}

export async function deleteContainer(place: ContainerPlace, leaseId?: string): Promise<void> {
  await askContainer(place, "DELETE", { headers: leaseId ? { "x-ms-lease-id": leaseId } : {} });
}

/** Bring a deleted container back under its own name. */
export async function restoreContainer(place: AccountPlace, name: string, version: string): Promise<void> {
  const headers = { "x-ms-deleted-container-name": name, "x-ms-deleted-container-version": version };
  await askContainer({ ...place, container: name }, "PUT", { query: { comp: "undelete" }, headers });
}

export async function containerProperties(place: ContainerPlace, signal?: AbortSignal): Promise<ContainerProperties> {
  const { headers } = await askContainer(place, "HEAD", { signal });
  const get = (name: string): string => headers.get(name) ?? "";
  return {
    modified: timeOf(get("last-modified")),
    etag: get("etag"),
    leaseState: get("x-ms-lease-state"),
    leaseDuration: get("x-ms-lease-duration"),
    hasPolicy: get("x-ms-has-immutability-policy") === "true",
    hasHold: get("x-ms-has-legal-hold") === "true",
    isVersionLevel: get("x-ms-immutable-storage-with-versioning-enabled") === "true",
    metadata: metadataOf(headers),
  };
}

export async function containerAccess(place: ContainerPlace, signal?: AbortSignal): Promise<ContainerAccess> {
  const answer = await askContainer(place, "GET", { query: { comp: "acl" }, signal });
  const level = answer.headers.get("x-ms-blob-public-access") ?? "";
  const root = parseXml(await answer.text());
  return { level, policies: policiesOf(root) };
}

/** Return the stored policies of an answer to Get ACL, of any service. */
export function policiesOf(root: Element): StoredPolicy[] {
  return childrenOf(root, "SignedIdentifier").map((one) => {
    const policy = childOf(one, "AccessPolicy");
    return { id: textOf(one, "Id"), start: textOf(policy, "Start"), expiry: textOf(policy, "Expiry"), rights: textOf(policy, "Permission") };
  });
}

/** Set the level and all stored policies at once: the service knows no other way. */
export async function setContainerAccess(place: ContainerPlace, access: ContainerAccess, leaseId?: string): Promise<void> {
  const headers: Record<string, string> = { "content-type": "application/xml" };
  if (access.level) headers["x-ms-blob-public-access"] = access.level;
  if (leaseId) headers["x-ms-lease-id"] = leaseId;
  const rows = access.policies.map(({ id, start, expiry, rights }) => {
    const part = (name: string, value: string): string => (value ? `<${name}>${escapeXml(value)}</${name}>` : "");
    return `<SignedIdentifier><Id>${escapeXml(id)}</Id><AccessPolicy>${part("Start", start)}${part("Expiry", expiry)}${part("Permission", rights)}</AccessPolicy></SignedIdentifier>`;
  });
  const body = `<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>${rows.join("")}</SignedIdentifiers>`;
  await askContainer(place, "PUT", { query: { comp: "acl" }, headers, body });
}
