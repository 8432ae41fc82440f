// Uploads into a container: what components/uploads.tsx shows, with what is particular to blobs.

import type { ComponentChildren, JSX } from "preact";

import { DropArea, Uploads } from "../../components/uploads";
import { heldId } from "../../protocol/across/leases";
import type { ContainerPlace } from "../../protocol/blob/place";
import { upload } from "../../protocol/blob/upload";
import { startUploads, type ToUpload } from "../../state/uploads";
import { texts } from "../../texts";
import { lacking } from "./place";

const words = texts.blobs;

export interface BlobDropAreaProps {
  readonly place: ContainerPlace;
  /** "" or "a/b/": where the files go. */
  readonly folder: string;
  readonly done: () => void;
  readonly children: ComponentChildren;
}

export function BlobDropArea({ place, folder, done, children }: BlobDropAreaProps): JSX.Element {
  const start = (files: readonly File[]): void => {
    startUploads(keyOf(place), files.map((file) => toUpload(place, folder, file)), done);
  };
  return <DropArea right={lacking("create")} folder={folder} start={start}>{children}</DropArea>;
}

export function BlobUploads({ place }: { readonly place: ContainerPlace }): JSX.Element {
  return <Uploads place={keyOf(place)} cancelled={words.uploadCancelled} stoppedHint={words.uploadResumeHint} />;
}

function toUpload(place: ContainerPlace, folder: string, file: File): ToUpload {
  const name = `${folder}${file.webkitRelativePath || file.name}`;
  const blob = { ...place, blob: name };
  return { name, file, send: (watch) => upload(blob, file, { ...watch, leaseId: heldId(blob) }) };
}

function keyOf({ account, container }: ContainerPlace): string {
  return JSON.stringify(["blob", account, container]);
}
