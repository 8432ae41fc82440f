// Renaming and deleting a file or directory.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Checkbox, Field } from "../../components/controls";
import { ConfirmByName, FormDialog } from "../../components/dialog";
import { heldId, moveLease } from "../../protocol/across/leases";
import { deleteDirectory } from "../../protocol/files/directories";
import { deleteFile, rename } from "../../protocol/files/nodes";
import { namesOf, parentOf, type PathPlace, pathText } from "../../protocol/files/place";
import { navigate } from "../../state/router";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { FILE, pathAddress } from "./place";

const words = texts.files;

export interface NodeDialogProps {
  readonly place: PathPlace;
  readonly isDirectory: boolean;
  readonly onClose: () => void;
}

/** Rename, or move within the share: the whole path may be changed. */
export function RenameNode({ place, isDirectory, onClose }: NodeDialogProps): JSX.Element {
  const path = useSignal(pathText(place.path));
  const replaces = useSignal(false);
  const act = async (): Promise<void> => {
    const target = { ...place, path: namesOf(path.value) };
    if (target.path.length === 0) throw new Error(words.noPath);
    await rename(place, target, {
      isDirectory,
      replaces: replaces.value,
      sourceLeaseId: isDirectory ? undefined : heldId(place),
      targetLeaseId: replaces.value ? heldId(target) : undefined,
    });
    if (!isDirectory) moveLease(place, target);
    say(words.renamed(pathText(target.path)));
    navigate(pathAddress(target, isDirectory ? {} : FILE), true);
  };
  return (
    <FormDialog title={words.renameTitle(place.path.at(-1) ?? "")} onClose={onClose} action={words.rename} act={act}>
      <Field label={words.newPath} value={path.value} onInput={(value) => { path.value = value; }} hint={words.newPathHint} required code />
      {!isDirectory && <Checkbox label={words.renameReplaces} checked={replaces.value} onChange={(checked) => { replaces.value = checked; }} />}
    </FormDialog>
  );
}

export function DeleteNode({ place, isDirectory, onClose }: NodeDialogProps): JSX.Element {
  const name = place.path.at(-1) ?? "";
  const act = async (): Promise<void> => {
    if (isDirectory) await deleteDirectory(place);
    else await deleteFile(place, heldId(place));
    say(words.deleted(name));
    navigate(pathAddress(parentOf(place)));
  };
  return (
    <ConfirmByName
      title={isDirectory ? words.deleteDirectoryTitle(name) : words.deleteFileTitle(name)}
      risk={isDirectory ? words.deleteDirectoryRisk : words.deleteFileRisk}
      name={name}
      onClose={onClose}
      act={act}
    />
  );
}
