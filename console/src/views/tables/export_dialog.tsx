// Exports the entities that the filter matches, all pages of them.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import { Checkbox, Select } from "../../components/controls";
import { FormDialog } from "../../components/dialog";
import { canChooseFile, chosenFile, download, TooLarge } from "../../components/save_file";
import { FORMATS, type Format } from "../../protocol/entity_files";
import type { TableAt } from "../../protocol/tables";
import { countText } from "../../state/times";
import { say } from "../../state/toasts";
import { texts } from "../../texts";
import { exportEntities } from "./transfers";

const words = texts.tables;

export function ExportDialog({ at, filter, onClose }: { readonly at: TableAt; readonly filter: string; readonly onClose: () => void }): JSX.Element {
  const format = useSignal<Format>("csv");
  const isChosen = useSignal(false);
  const count = useSignal<number | null>(null);
  const end = useMemo(() => new AbortController(), []);
  useEffect(() => () => { end.abort(); }, []);
  const act = async (): Promise<void> => {
    const name = `${at.table}.${format.value}`;
    const sink = isChosen.value ? await chosenFile(name) : download(name);
    count.value = 0;
    try {
      const total = await exportEntities({ at, filter, format: format.value, sink, signal: end.signal, progress: (now) => { count.value = now; } });
      say(words.exported(countText(total)));
    } catch (error) {
      await sink.abort();
      count.value = null;
      throw error instanceof TooLarge ? new Error(canChooseFile() ? words.exportTooLarge : words.exportTooLargeHere) : error;
    }
  };
  return (
    <FormDialog title={words.exportTitle(at.table)} onClose={onClose} action={words.export} act={act}>
      <p>{filter ? words.exportFiltered : words.exportAll}</p>
      {filter && <p class="asked-name"><code>{filter}</code></p>}
      <Select label={words.format} value={format.value} options={FORMATS.map((one) => [one, words.formats[one]])} onChange={(one) => { format.value = one === "json" ? "json" : "csv"; }} />
      {canChooseFile() && <Checkbox label={words.chooseFile} checked={isChosen.value} onChange={(checked) => { isChosen.value = checked; }} />}
      <p class="hint">{format.value === "csv" ? words.csvHint : words.jsonHint}</p>
      <p role="status">{count.value === null ? "" : words.exporting(countText(count.value))}</p>
    </FormDialog>
  );
}
