// Uploads into a directory. Names that are taken are asked about first: a file is not replaced by
// mistake, and the answer counts for all that were dropped together. Who drops more meanwhile is asked
// about these next.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";

import { Button } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { DropArea, Uploads } from "../../components/uploads";
import { forgetLease, heldId } from "../../protocol/across/leases";
import { ServiceError } from "../../protocol/errors";
import { fileProperties } from "../../protocol/files/nodes";
import { childOf, type PathPlace, pathText } from "../../protocol/files/place";
import { LeftBehind, uploadFile } from "../../protocol/files/upload";
import { Incomplete, type SendWatch, startUploads } from "../../state/uploads";
import { complain } from "../../state/toasts";
import { texts } from "../../texts";
import { lacking } from "./place";

const words = texts.files;
const LOOKED_UP_AT_ONCE = 4;
const NAMES_SHOWN = 10;

export interface FileDropAreaProps {
  readonly place: PathPlace;
  readonly done: () => void;
  readonly children: ComponentChildren;
}

interface Asked {
  readonly number: number;
  readonly files: readonly File[];
  readonly taken: ReadonlySet<string>;
}

export function FileDropArea({ place, done, children }: FileDropAreaProps): JSX.Element {
  const asked = useSignal<readonly Asked[]>([]);
  const last = useRef(0);
  const start = (files: readonly File[], taken: ReadonlySet<string>): void => {
    const chosen = files.map((file) => ({
      name: pathText(childOf(place, file.name).path),
      file,
      send: (watch: SendWatch) => send(childOf(place, file.name), file, taken.has(file.name), watch),
    }));
    startUploads(keyOf(place), chosen, done);
  };
  const choose = async (files: readonly File[]): Promise<void> => {
    const taken = await takenNames(place, files.map((file) => file.name));
    last.current += 1;
    if (taken.size) asked.value = [...asked.value, { number: last.current, files, taken }];
    else start(files, taken);
  };
  const [first] = asked.value;
  const next = (): void => { asked.value = asked.value.slice(1); };
  const answer = ({ files, taken }: Asked, replaces: boolean): void => {
    next();
    const chosen = replaces ? files : files.filter((file) => !taken.has(file.name));
    if (chosen.length) start(chosen, taken);
  };
  return (
    <DropArea right={lacking("write")} folder={pathText(place.path)} start={(files) => { choose(files).catch(complain); }}>
      {children}
      {first && <Replace key={first.number} asked={first} answer={(replaces) => { answer(first, replaces); }} onClose={next} />}
    </DropArea>
  );
}

interface ReplaceProps {
  readonly asked: Asked;
  readonly answer: (replaces: boolean) => void;
  readonly onClose: () => void;
}

function Replace({ asked: { files, taken }, answer, onClose }: ReplaceProps): JSX.Element {
  const names = [...taken];
  const isAll = files.every((file) => taken.has(file.name));
  return (
    <Dialog title={words.replaceTitle(taken.size)} onClose={onClose}>
      <ul class="taken">{names.slice(0, NAMES_SHOWN).map((name) => <li key={name}><code>{name}</code></li>)}</ul>
      {names.length > NAMES_SHOWN && <p class="muted">{texts.blobs.uploadMore(String(names.length - NAMES_SHOWN))}</p>}
      <p>{words.replaceText(taken.size)}</p>
      <div class="actions">
        <Button onClick={onClose}>{texts.dialogs.cancel}</Button>
        {!isAll && <Button onClick={() => { answer(false); }}>{words.leaveOut}</Button>}
        <Button kind="danger" onClick={() => { answer(true); }}>{words.replace}</Button>
      </div>
    </Dialog>
  );
}

export function FileUploads({ place }: { readonly place: PathPlace }): JSX.Element {
  return <Uploads place={keyOf(place)} cancelled={words.uploadCancelled} />;
}

async function send(place: PathPlace, file: File, replaces: boolean, watch: SendWatch): Promise<void> {
  try {
    await uploadFile(place, file, { ...watch, replaces, leaseId: heldId(place) });
    forgetLease(place);
  } catch (error) {
    if (error instanceof LeftBehind) throw new Incomplete(words.leftBehind(error.temporary));
    throw error;
  }
}

/** Return those of the names that files have. Who may not read is not told: then the service refuses. */
async function takenNames(place: PathPlace, names: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const left = [...names];
  const look = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      if (await isTaken(childOf(place, name))) found.add(name);
    }
  };
  await Promise.all(Array.from({ length: LOOKED_UP_AT_ONCE }, look));
  return found;
}

async function isTaken(place: PathPlace): Promise<boolean> {
  try {
    await fileProperties(place);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && [403, 404].includes(error.status)) return false;
    throw error;
  }
}

function keyOf({ account, share }: PathPlace): string {
  return JSON.stringify(["file", account, share]);
}
