// Uploads. The File service has no commit: ranges show at once. So a file is written under a
// temporary name in its directory, and takes its name in one step when it is whole. What has the name
// until then stays as it was, however the upload ends.

import { NoAnswer, ServiceError } from "../errors";
import { inPieces } from "../pieces";
import { tried, TRIES } from "../shared/retries";
import { createFile, deleteFile, fileProperties, putRange, rename } from "./nodes";
import { parentOf, type PathPlace } from "./place";

export const PIECE_BYTES = 4 * 1024 * 1024;

export interface FileUploadWatch {
  readonly signal: AbortSignal;
  /** Whether the person agreed to replace the file that has the name. */
  readonly replaces: boolean;
  readonly leaseId?: string | undefined;
  readonly progress: (doneBytes: number) => void;
  /** Called before the one request after which the upload cannot be cancelled. */
  readonly commits: () => void;
}

/** An upload ended early, and its temporary file could not be deleted. `cause` is why it ended. */
export class LeftBehind extends Error {
  constructor(readonly temporary: string, cause: unknown) {
    super(temporary, { cause });
    this.name = "LeftBehind";
  }
}

/**
 * Upload a file.
 *
 * Raises: ServiceError (409 ResourceAlreadyExists if another made the file meanwhile), LeftBehind, the
 * abort's reason.
 */
export async function uploadFile(place: PathPlace, file: File, watch: FileUploadWatch): Promise<void> {
  const temporary = { ...place, path: [...parentOf(place).path, temporaryName()] };
  watch.signal.throwIfAborted();
  const kept = watch.replaces ? await keptHeaders(place, watch.signal) : {};
  await created(temporary, file, watch.signal);
  let isNamed = false;
  try {
    await putPieces(temporary, file, watch);
    watch.signal.throwIfAborted();
    watch.commits();
    isNamed = true;
    await named(temporary, () => rename(temporary, place, { replaces: watch.replaces, targetLeaseId: watch.leaseId, headers: kept }));
  } catch (error) {
    const wasThere = await removed(temporary, error);
    // The answer to the rename was lost, and not the rename.
    if (isNamed && error instanceof NoAnswer && !wasThere) return;
    throw error;
  }
}

/** Make the temporary file. One that was perhaps made by an attempt that failed is deleted again. */
async function created(temporary: PathPlace, file: File, signal: AbortSignal): Promise<void> {
  const headers: Record<string, string> = file.type ? { "x-ms-content-type": file.type } : {};
  let isPerhapsThere = false;
  const create = async (): Promise<void> => {
    try {
      // Without the signal: a creation that goes on after its abort would leave the file behind.
      await createFile(temporary, file.size, headers);
    } catch (error) {
      isPerhapsThere ||= !isRefusal(error);
      throw error;
    }
  };
  try {
    await tried(signal, create);
  } catch (error) {
    // Who may not create may not delete either: what was refused is said, and not that.
    if (isPerhapsThere) await removed(temporary, error);
    throw error;
  }
}

/** Whether the service said that it did nothing. */
function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && error.status >= 400 && error.status < 500;
}

/** Rename the temporary file; again if the server refuses for a moment. If an answer is lost, look what became of it. */
async function named(temporary: PathPlace, act: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await act();
      return;
    } catch (error) {
      if (error instanceof NoAnswer && await isGone(temporary)) return;
      if (!(error instanceof ServiceError && error.status === 503) || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
    }
  }
}

/** Whether the file is known not to be there. */
async function isGone(place: PathPlace): Promise<boolean> {
  try {
    await fileProperties(place);
    return false;
  } catch (error) {
    return error instanceof ServiceError && error.status === 404;
  }
}

/** Return a name that no other upload has. It sorts behind most, and says what it is. */
export function temporaryName(): string {
  const random = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `~upload-${random}.tmp`;
}

// The new file keeps who may use the old one, and when it was made.
async function keptHeaders(place: PathPlace, signal: AbortSignal): Promise<Record<string, string>> {
  try {
    const { smb } = await fileProperties(place, signal);
    return { "x-ms-file-permission-key": smb.permissionKey, "x-ms-file-creation-time": smb.creation };
  } catch (error) {
    if (error instanceof ServiceError && [403, 404].includes(error.status)) return {};
    throw error;
  }
}

/** Delete the temporary file of an upload that failed. Return whether it was there. Raises: LeftBehind. */
async function removed(temporary: PathPlace, cause: unknown): Promise<boolean> {
  let attempts = 0;
  try {
    // Also after a cancellation.
    await tried(new AbortController().signal, () => { attempts += 1; return deleteFile(temporary); });
    return true;
  } catch (error) {
    // Gone at a later attempt: an earlier one deleted it, and its answer was lost.
    if (error instanceof ServiceError && error.status === 404) return attempts > 1;
    throw new LeftBehind(temporary.path.join("/"), cause);
  }
}

async function putPieces(place: PathPlace, file: File, watch: FileUploadWatch): Promise<void> {
  let done = 0;
  await inPieces(file, PIECE_BYTES, watch.signal, async ({ offset, bytes }, signal) => {
    await tried(signal, () => putRange(place, offset, bytes, signal));
    done += bytes.length;
    watch.progress(done);
  });
}
