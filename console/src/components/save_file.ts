// Where a page writes what a person asked for: a download, or a file that the person chooses. The
// download is held by the browser until it is whole, so it has a limit.

/** What a download may hold at once. */
export const DOWNLOAD_MAX_BYTES = 64 * 1024 * 1024;

export interface Sink {
  /** Raises: TooLarge. */
  readonly write: (text: string) => Promise<void>;
  readonly close: () => Promise<void>;
  /** Leave nothing behind. */
  readonly abort: () => Promise<void>;
}

/** A download would be larger than DOWNLOAD_MAX_BYTES. */
export class TooLarge extends Error {}

interface ChosenFile {
  readonly createWritable: () => Promise<FileSystemWritableFileStream>;
}

type Picker = (options: { readonly suggestedName: string }) => Promise<ChosenFile>;

function picker(): Picker | null {
  const found = (window as unknown as Record<string, unknown>)["showSaveFilePicker"];
  return typeof found === "function" ? (found.bind(window) as Picker) : null;
}

export function canChooseFile(): boolean {
  return picker() !== null;
}

/** Ask the person for a file. Raises: AbortError if the person chooses none. */
export async function chosenFile(name: string): Promise<Sink> {
  const pick = picker();
  if (!pick) throw new Error("this browser lets a page choose no file");
  const stream = await (await pick({ suggestedName: name })).createWritable();
  return {
    write: (text) => stream.write(text),
    close: () => stream.close(),
    abort: () => stream.abort(),
  };
}

/** Return a sink that becomes a download named `name`. Its type is never one that a browser shows. */
export function download(name: string): Sink {
  let parts: Blob[] = [];
  let bytes = 0;
  return {
    write: (text) => {
      const part = new Blob([text]);
      bytes += part.size;
      if (bytes > DOWNLOAD_MAX_BYTES) return Promise.reject(new TooLarge());
      parts.push(part);
      return Promise.resolve();
    },
    close: () => {
      const url = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = name;
      link.click();
      setTimeout(() => { URL.revokeObjectURL(url); }, 60_000);
      parts = [];
      return Promise.resolve();
    },
    abort: () => {
      parts = [];
      return Promise.resolve();
    },
  };
}
