// Choosing or dropping files, and how far their uploads are.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { countText, sizeText } from "../state/times";
import { textOfError } from "../state/toasts";
import { cancelUpload, hideFinished, isUnderWay, type Upload, uploads } from "../state/uploads";
import { texts } from "../texts";
import { Button } from "./controls";
import { RightButton } from "./rights";

const words = texts.blobs;
const SHOWN = 50;

export interface DropAreaProps {
  /** The text of the right that the sign-in lacks to upload; "" for none. */
  readonly right: string;
  /** The folder that the files go into, as it is shown; "" for none. */
  readonly folder: string;
  readonly start: (files: readonly File[]) => void;
  readonly children: ComponentChildren;
}

export function DropArea({ right, folder, start, children }: DropAreaProps): JSX.Element {
  const isOver = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const begin = (chosen: FileList | null): void => {
    if (chosen?.length && !right) start([...chosen]);
  };
  useEffect(() => {
    // A file that is dropped beside the area would replace the page, and end the session.
    const stay = (event: DragEvent): void => { event.preventDefault(); };
    addEventListener("dragover", stay);
    addEventListener("drop", stay);
    return () => {
      removeEventListener("dragover", stay);
      removeEventListener("drop", stay);
    };
  }, []);
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    isOver.value = false;
    begin(event.dataTransfer?.files ?? null);
  };
  return (
    <div
      class={isOver.value ? "drop-area over" : "drop-area"}
      onDragOver={(event) => { event.preventDefault(); isOver.value = true; }}
      onDragLeave={() => { isOver.value = false; }}
      onDrop={drop}
    >
      <div class="upload-bar">
        <RightButton right={right} kind="primary" text={words.upload} onClick={() => input.current?.click()} />
        <label class="muted" for={id}><span class="unseen">{words.filesToUpload}</span></label>
        <input
          ref={input}
          id={id}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            begin(event.currentTarget.files);
            event.currentTarget.value = "";
          }}
        />
        <span class="muted drop-hint" aria-hidden="true">{words.dropHere}{folder && <> <code>{folder}</code></>}</span>
      </div>
      {children}
    </div>
  );
}

export interface UploadsProps {
  readonly place: string;
  /** What is said of one that was cancelled. */
  readonly cancelled: string;
  /** What to do with one that was cancelled or failed. */
  readonly stoppedHint?: string;
}

export function Uploads({ place, cancelled, stoppedHint }: UploadsProps): JSX.Element | null {
  const all = uploads.value.filter((one) => one.place === place);
  if (!all.length) return null;
  const shown = [...all.filter(isUnderWay), ...all.filter((one) => !isUnderWay(one))].slice(0, SHOWN);
  const hasStopped = all.some((one) => one.state === "cancelled" || one.state === "failed");
  return (
    <section class="panel uploads" aria-label={words.uploads}>
      <ul>{shown.map((one) => <Line key={one.number} upload={one} cancelled={cancelled} />)}</ul>
      {all.length > shown.length && <p class="muted">{words.uploadMore(countText(all.length - shown.length))}</p>}
      {hasStopped && stoppedHint && <p class="hint">{stoppedHint}</p>}
      {!all.every(isUnderWay) && <div class="actions"><Button kind="quiet" onClick={hideFinished}>{words.hideFinished}</Button></div>}
    </section>
  );
}

function Line({ upload, cancelled }: { readonly upload: Upload; readonly cancelled: string }): JSX.Element {
  const { number, name, state, sizeBytes, doneBytes } = upload;
  const isWhole = state === "done";
  return (
    <li class={`upload-line ${state}`}>
      <span class="upload-name" title={name}>{name}</span>
      <progress aria-label={name} max={Math.max(1, sizeBytes)} value={isWhole ? Math.max(1, sizeBytes) : doneBytes} />
      <span class="upload-state muted" role={state === "failed" ? "alert" : "status"}>{state === "cancelled" ? cancelled : stateText(upload)}</span>
      {(state === "waiting" || state === "running") && (
        <Button kind="quiet" onClick={() => { cancelUpload(number); }}>{words.cancelUpload}</Button>
      )}
    </li>
  );
}

function stateText({ state, doneBytes, skippedBytes, sizeBytes, error }: Upload): string {
  const skipped = skippedBytes ? words.uploadSkipped(sizeText(skippedBytes)) : "";
  switch (state) {
    case "waiting": return words.uploadWaiting;
    case "running": return words.uploadRunning(sizeText(doneBytes), sizeText(sizeBytes)) + skipped;
    case "committing": return words.uploadCommitting;
    case "done": return words.uploadDone + skipped;
    case "cancelled": return "";
    case "failed": return textOfError(error);
  }
}
