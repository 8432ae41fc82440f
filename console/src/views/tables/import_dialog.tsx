// Imports entities from a file of CSV or JSON, and says where it stopped if one was refused.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useMemo } from "preact/hooks";

import { Select } from "../../components/controls";
import { FormDialog } from "../../components/dialog";
import type { Format } from "../../protocol/entity_files";
import type { TableAt } from "../../protocol/tables";
import { countText } from "../../state/times";
import { say, textOfError } from "../../state/toasts";
import { texts } from "../../texts";
import { lackingPlace } from "../places/rights";
import { importEntities, ImportStopped, type Mode, MODES } from "./transfers";

const words = texts.tables;

export interface ImportDialogProps {
  readonly at: TableAt;
  readonly onClose: () => void;
  /** Some entities were written, perhaps not all. */
  readonly onWritten: () => void;
}

export function ImportDialog({ at, onClose, onWritten }: ImportDialogProps): JSX.Element {
  const id = useId();
  const file = useSignal<File | null>(null);
  const mode = useSignal<Mode>("stop");
  // To write over an entity needs the right to change one, besides that to add one.
  const offered = lackingPlace("changeEntity") ? MODES.filter((one) => one === "stop") : MODES;
  const state = useSignal<{ readonly written: number; readonly readBytes: number } | null>(null);
  const end = useMemo(() => new AbortController(), []);
  useEffect(() => () => { end.abort(); }, []);
  const act = async (): Promise<void> => {
    if (!file.value) throw new Error(words.noFile);
    const progress = (written: number, readBytes: number): void => { state.value = { written, readBytes }; };
    try {
      const total = await importEntities({ at, file: file.value, format: formatOf(file.value), mode: mode.value, signal: end.signal, progress });
      say(words.imported(countText(total)));
    } catch (error) {
      throw error instanceof ImportStopped ? new Error(words.importStopped(countText(error.written), error.key, textOfError(error.reason))) : error;
    } finally {
      state.value = null;
      onWritten();
    }
  };
  return (
    <FormDialog title={words.importTitle(at.table)} onClose={onClose} action={words.import} act={act} disabled={file.value === null}>
      <div class="field">
        <label for={id}>{words.file}</label>
        <input id={id} type="file" accept=".csv,.json,.jsonl,text/csv,application/json" aria-describedby={`${id}-hint`} onChange={(event) => { file.value = event.currentTarget.files?.[0] ?? null; }} />
        <p id={`${id}-hint`} class="hint">{words.fileHint}</p>
      </div>
      <Select label={words.mode} value={mode.value} options={offered.map((one) => [one, words.modes[one]])} onChange={(one) => { mode.value = MODES.find((known) => known === one) ?? "stop"; }} />
      {state.value && file.value && (
        <>
          <progress aria-label={file.value.name} max={Math.max(1, file.value.size)} value={state.value.readBytes} />
          <p role="status">{words.importing(countText(state.value.written))}</p>
        </>
      )}
    </FormDialog>
  );
}

function formatOf(file: File): Format {
  return /\.(json|jsonl|ndjson)$/i.test(file.name) || file.type === "application/json" ? "json" : "csv";
}
