// The button that downloads a blob or file, how far it is, and the button that ends it. Leaving the view
// and signing out end it too.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { download, type ReadPlace, type ReadProperties } from "../protocol/across/download";
import { beginDownload } from "../state/downloads";
import { sizeText } from "../state/times";
import { complain, say } from "../state/toasts";
import { texts } from "../texts";
import { Button } from "./controls";
import { RightButton } from "./rights";

const words = texts.blobs;
/** A smaller one is over before anybody could end it. */
const SHOWN_FROM_BYTES = 4 * 1024 * 1024;

export interface DownloadProps {
  readonly place: ReadPlace;
  readonly properties: ReadProperties;
  /** The text of the right that the sign-in lacks to read; "" for none. */
  readonly right: string;
  /** What is said where the browser offers no way. */
  readonly refused: string;
}

export function Download({ place, properties, right, refused }: DownloadProps): JSX.Element {
  const doneBytes = useSignal<number | null>(null);
  const end = useRef<AbortController | null>(null);
  useEffect(() => () => { end.current?.abort(); }, []);
  const start = (): void => {
    const { abort, finished } = beginDownload();
    const { signal } = abort;
    end.current = abort;
    doneBytes.value = 0;
    download(place, properties, { signal, refused, progress: (done) => { doneBytes.value = done; } })
      .then((isDone) => { if (isDone && properties.sizeBytes > 0) say(words.downloaded); })
      .catch((error: unknown) => { if (!signal.aborted) complain(error); })
      .finally(() => { finished(); doneBytes.value = null; });
  };
  const isShown = doneBytes.value !== null && properties.sizeBytes >= SHOWN_FROM_BYTES;
  return (
    <>
      <RightButton right={right} kind="primary" text={words.download} disabled={doneBytes.value !== null} onClick={start} />
      {isShown && (
        <>
          <span class="muted" role="status">{doneBytes.value ? words.downloading(sizeText(doneBytes.value), sizeText(properties.sizeBytes)) : words.loading}</span>
          <Button onClick={() => { end.current?.abort(); }}>{texts.dialogs.cancel}</Button>
        </>
      )}
    </>
  );
}
