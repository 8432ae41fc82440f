// Choosing or dropping files, and how far their uploads are.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { Button } from "../../components/controls";
import type { ContainerPlace } from "../../protocol/blob/place";
import { countText, sizeText } from "../../state/times";
import { textOfError } from "../../state/toasts";
import { texts } from "../../texts";
import { ActButton } from "./place";
import { cancelUpload, hideFinished, isUnderWay, startUploads, type Upload, uploads } from "./uploads";

const words = texts.blobs;
const SHOWN = 50;

export interface DropAreaProps {
  readonly place: ContainerPlace;
  /** "" or "a/b/": where the files go. */
  readonly folder: string;
  readonly done: () => void;
  readonly children: ComponentChildren;
}

export function DropArea({ place, folder, done, children }: DropAreaProps): JSX.Element {
  const isOver = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const start = (chosen: FileList | null): void => {
    if (chosen?.length) startUploads(place, folder, [...chosen], done);
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
    start(event.dataTransfer?.files ?? null);
  };
  return (
    <div
      class={isOver.value ? "drop-area over" : "drop-area"}
      onDragOver={(event) => { event.preventDefault(); isOver.value = true; }}
      onDragLeave={() => { isOver.value = false; }}
      onDrop={drop}
    >
      <div class="upload-bar">
        <ActButton act="create" kind="primary" text={words.upload} onClick={() => input.current?.click()} />
        <label class="muted" for={id}><span class="unseen">{words.filesToUpload}</span></label>
        <input
          ref={input}
          id={id}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            start(event.currentTarget.files);
            event.currentTarget.value = "";
          }}
        />
        <span class="muted drop-hint" aria-hidden="true">{words.dropHere}{folder && <> <code>{folder}</code></>}</span>
      </div>
      {children}
    </div>
  );
}

/** The uploads into this container. */
export function Uploads({ place }: { readonly place: ContainerPlace }): JSX.Element | null {
  const all = uploads.value.filter((one) => one.place.account === place.account && one.place.container === place.container);
  if (!all.length) return null;
  const shown = [...all.filter(isUnderWay), ...all.filter((one) => !isUnderWay(one))].slice(0, SHOWN);
  const hasStopped = all.some((one) => one.state === "cancelled" || one.state === "failed");
  return (
    <section class="panel uploads" aria-label={words.uploads}>
      <ul>{shown.map((one) => <Line key={one.number} upload={one} />)}</ul>
      {all.length > shown.length && <p class="muted">{words.uploadMore(countText(all.length - shown.length))}</p>}
      {hasStopped && <p class="hint">{words.uploadResumeHint}</p>}
      {!all.every(isUnderWay) && <div class="actions"><Button kind="quiet" onClick={hideFinished}>{words.hideFinished}</Button></div>}
    </section>
  );
}

function Line({ upload }: { readonly upload: Upload }): JSX.Element {
  const { number, name, state, sizeBytes, doneBytes } = upload;
  const isWhole = state === "done";
  return (
    <li class={`upload-line ${state}`}>
      <span class="upload-name" title={name}>{name}</span>
      <progress aria-label={name} max={Math.max(1, sizeBytes)} value={isWhole ? Math.max(1, sizeBytes) : doneBytes} />
      <span class="upload-state muted" role={state === "failed" ? "alert" : "status"}>{stateText(upload)}</span>
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
    case "cancelled": return words.uploadCancelled;
    case "failed": return textOfError(error);
  }
}
