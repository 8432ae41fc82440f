// Exports and imports of entities, a page or a piece of a file at a time.

import type { Entity, NewEntity } from "../../protocol/entities";
import { csvHead, csvOf, entityReader, type Format, jsonOf } from "../../protocol/entity_files";
import { type EntityMarker, insertEntity, queryEntities, type TableAt, writeEntity } from "../../protocol/tables";
import type { Sink } from "../../components/save_file";
import { currentSession } from "../../state/session";
import { texts } from "../../texts";

const PAGE_ENTITIES = 1000;
const WRITTEN_AT_ONCE = 6;

/** What happens to an entity that is there already. */
export const MODES = ["stop", "replace", "merge"] as const;
export type Mode = (typeof MODES)[number];

export interface Export {
  readonly at: TableAt;
  readonly filter: string;
  readonly format: Format;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly progress: (entities: number) => void;
}

/** Write all entities that match. CSV reads them twice: its first line names every property. */
export async function exportEntities(task: Export): Promise<number> {
  const { format, sink } = task;
  let count = 0;
  const names = format === "csv" ? await namesOf(task) : [];
  await sink.write(format === "csv" ? csvHead(names) : "[");
  for await (const page of pagesOf(task)) {
    const pieces = page.map((one, at) => (format === "csv" ? csvOf(one, names) : `${count + at > 0 ? "," : ""}\n${jsonOf(one)}`));
    if (pieces.length) await sink.write(pieces.join(""));
    count += page.length;
    task.progress(count);
  }
  if (format === "json") await sink.write("\n]\n");
  await sink.close();
  return count;
}

async function namesOf(task: Export): Promise<string[]> {
  const names = new Set<string>();
  for await (const page of pagesOf(task)) {
    for (const { properties } of page) for (const name of properties.keys()) names.add(name);
  }
  return [...names];
}

async function* pagesOf({ at, filter, signal }: Export): AsyncGenerator<readonly Entity[]> {
  let from: EntityMarker | null = null;
  do {
    const page = await queryEntities(currentSession().credential, at, { filter, from, top: PAGE_ENTITIES }, signal);
    yield page.entities;
    from = page.next;
  } while (from);
}

export interface Import {
  readonly at: TableAt;
  readonly file: File;
  readonly format: Format;
  readonly mode: Mode;
  readonly signal: AbortSignal;
  readonly progress: (written: number, readBytes: number) => void;
}

/** One entity of a file was refused, or is none. `written`: how many were written before. */
export class ImportStopped extends Error {
  constructor(readonly written: number, readonly key: string | null, readonly reason: unknown) {
    super("the import stopped");
  }
}

/** Write the entities of a file. Return how many. Raises: ImportStopped, at the first that fails. */
export async function importEntities(task: Import): Promise<number> {
  const counted = { written: 0, readBytes: 0 };
  const reader = entityReader(task.format);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const take = async (read: () => NewEntity[]): Promise<void> => {
    await writeAll(task, parsed(read, counted.written), counted);
    task.progress(counted.written, counted.readBytes);
  };
  for await (const bytes of chunksOf(task.file)) {
    task.signal.throwIfAborted();
    counted.readBytes += bytes.length;
    await take(() => reader.push(decoder.decode(bytes, { stream: true })));
  }
  await take(() => [...reader.push(decoder.decode()), ...reader.end()]);
  return counted.written;
}

function parsed(read: () => NewEntity[], written: number): NewEntity[] {
  try {
    return read();
  } catch (error) {
    throw new ImportStopped(written, null, error);
  }
}

async function* chunksOf(file: File): AsyncGenerator<Uint8Array> {
  const stream = file.stream().getReader();
  try {
    for (let next = await stream.read(); !next.done; next = await stream.read()) yield next.value;
  } finally {
    await stream.cancel();
  }
}

async function writeAll(task: Import, entities: readonly NewEntity[], counted: { written: number }): Promise<void> {
  const left = [...entities];
  const failed: { error: ImportStopped | null } = { error: null };
  const write = async (): Promise<void> => {
    for (let one = left.shift(); one && !failed.error && !task.signal.aborted; one = left.shift()) {
      try {
        await writeOne(task, one);
        counted.written += 1;
      } catch (error) {
        failed.error ??= new ImportStopped(0, texts.tables.keyText(one.partitionKey, one.rowKey), error);
      }
    }
  };
  await Promise.all(Array.from({ length: WRITTEN_AT_ONCE }, write));
  task.signal.throwIfAborted();
  if (failed.error) throw new ImportStopped(counted.written, failed.error.key, failed.error.reason);
}

function writeOne({ at, mode }: Import, entity: NewEntity): Promise<void> {
  const { credential } = currentSession();
  return mode === "stop" ? insertEntity(credential, at, entity) : writeEntity(credential, at, entity, mode, null);
}
