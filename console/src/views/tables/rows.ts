// The page of entities that the grid shows. Pages replace each other: one is in memory.

import { type ReadonlySignal, signal } from "@preact/signals";

import { type Entity, type EntityKey } from "../../protocol/entities";
import { type EntityMarker, queryEntities, type TableAt } from "../../protocol/tables";
import { currentSession } from "../../state/session";

export const PAGE_ENTITIES = 500;

export interface Rows {
  readonly entities: ReadonlySignal<readonly Entity[]>;
  readonly next: ReadonlySignal<EntityMarker | null>;
  /** How many pages are before this one. */
  readonly before: ReadonlySignal<number>;
  readonly error: ReadonlySignal<unknown>;
  /** Whether an answer has come. */
  readonly isRead: ReadonlySignal<boolean>;
  readonly load: () => void;
  readonly showNext: () => void;
  readonly showPrevious: () => void;
  /** Show an entity as it is now; null: it is gone. */
  readonly put: (key: EntityKey, entity: Entity | null) => void;
  readonly stop: () => void;
}

export function rowsOf(at: TableAt, filter: string): Rows {
  const entities = signal<readonly Entity[]>([]);
  const next = signal<EntityMarker | null>(null);
  const markers = signal<readonly (EntityMarker | null)[]>([null]);
  const before = signal(0);
  const error = signal<unknown>(null);
  const isRead = signal(false);
  let asked = new AbortController();
  const load = (): void => {
    asked.abort();
    const end = new AbortController();
    asked = end;
    const query = { filter, from: markers.value.at(-1) ?? null, top: PAGE_ENTITIES };
    queryEntities(currentSession().credential, at, query, end.signal)
      .then((page) => {
        if (end.signal.aborted) return;
        entities.value = page.entities;
        next.value = page.next;
        before.value = markers.value.length - 1;
        error.value = null;
        isRead.value = true;
      })
      .catch((problem: unknown) => { if (!end.signal.aborted) error.value = problem; });
  };
  const show = (list: readonly (EntityMarker | null)[]): void => {
    markers.value = list;
    load();
  };
  return {
    entities, next, before, error, isRead, load,
    showNext: () => { if (next.value) show([...markers.value, next.value]); },
    showPrevious: () => { if (markers.value.length > 1) show(markers.value.slice(0, -1)); },
    put: (key, entity) => {
      const isIt = (one: Entity): boolean => one.partitionKey === key.partitionKey && one.rowKey === key.rowKey;
      entities.value = entities.value.flatMap((one) => (isIt(one) ? (entity ? [entity] : []) : [one]));
    },
    stop: () => { asked.abort(); },
  };
}
