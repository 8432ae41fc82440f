// Writes one changed value, if the entity is still as it was shown. Else both versions are returned,
// and what was written by others stays until a person has chosen. Others who wrote the same value are no
// conflict.

import { type Entity, isEqual, type NewEntity, type TypedValue, withProperty } from "../../protocol/entities";
import { getEntity, insertEntity, isStale, type TableAt, writeEntity } from "../../protocol/tables";
import { ServiceError } from "../../protocol/errors";
import { currentSession } from "../../state/session";

export interface Change {
  readonly name: string;
  /** null: the property is removed. */
  readonly value: TypedValue | null;
}

export interface Conflict {
  /** The entity as the person saw it. */
  readonly seen: Entity;
  readonly change: Change;
  /** The newest version with the change on top: what `Keep mine` writes. */
  readonly mine: NewEntity;
  /** The newest version; null: it was deleted. */
  readonly theirs: Entity | null;
}

/** Write a change. Return the entity as it is then, or the conflict. Raises: ServiceError. */
export async function save(at: TableAt, seen: Entity, change: Change): Promise<Entity | Conflict> {
  return write(at, seen, change, () => writeChange(at, seen, change, seen.etag));
}

/** Write `mine`, if nobody has written since `theirs` was read. Return as `save`. */
export async function keepMine(at: TableAt, conflict: Conflict): Promise<Entity | Conflict> {
  const { seen, change, mine, theirs } = conflict;
  return write(at, seen, change, () =>
    theirs ? writeChange(at, theirs, change, theirs.etag) : insertEntity(currentSession().credential, at, mine));
}

export function isConflict(one: Entity | Conflict): one is Conflict {
  return "theirs" in one;
}

async function write(at: TableAt, seen: Entity, change: Change, act: () => Promise<void>): Promise<Entity | Conflict> {
  const { credential } = currentSession();
  try {
    await act();
  } catch (error) {
    const isThereAgain = error instanceof ServiceError && error.code === "EntityAlreadyExists";
    if (!isStale(error) && !isThereAgain) throw error;
    const theirs = await getEntity(credential, at, seen);
    if (theirs && isEqual(change.value, theirs.properties.get(change.name) ?? null)) return theirs;
    return { seen, change, mine: withProperty(theirs ?? seen, change.name, change.value), theirs };
  }
  return (await getEntity(credential, at, seen)) ?? withProperty(seen, change.name, change.value);
}

// A merge sends the changed property only; to remove one, the whole is replaced.
async function writeChange(at: TableAt, entity: Entity, change: Change, etag: string): Promise<void> {
  const { credential } = currentSession();
  if (change.value === null) return writeEntity(credential, at, withProperty(entity, change.name, null), "replace", etag);
  const part: NewEntity = { ...entity, properties: new Map([[change.name, change.value]]) };
  return writeEntity(credential, at, part, "merge", etag);
}

type Value = TypedValue | null;

export interface Difference {
  readonly name: string;
  readonly mine: TypedValue | null;
  readonly theirs: TypedValue | null;
  /** Where the versions differ: who changed it since the entity was seen. */
  readonly byMe: boolean;
  readonly byThem: boolean;
}

/** Return all properties of both versions, those first that differ. */
export function differences({ seen, change, mine, theirs }: Conflict): Difference[] {
  const names = new Set([change.name, ...mine.properties.keys(), ...(theirs?.properties.keys() ?? [])]);
  const all = [...names].map((name) => {
    const [before, here, there] = [seen, mine, theirs].map((one) => one?.properties.get(name) ?? null) as [Value, Value, Value];
    const differs = theirs === null ? name === change.name : !isEqual(here, there);
    return { name, mine: here, theirs: there, byMe: differs && !isEqual(before, here), byThem: differs && theirs !== null && !isEqual(before, there) };
  });
  const isMarked = (one: Difference): boolean => one.byMe || one.byThem;
  return [...all.filter(isMarked), ...all.filter((one) => !isMarked(one))];
}
