// What the footer of a Parquet file says, read by two ranges: its last bytes, then the footer.

import type { ComponentChildren, JSX } from "preact";

import { Problem } from "../../components/messages";
import { Facts } from "../../components/parts";
import { type ReadPlace, type ReadProperties, readRange } from "../../protocol/across/download";
import { footerLength, type ParquetFooter, ParquetError, readFooter, type RowGroup, type SchemaRow, TAIL_BYTES } from "../../protocol/parquet/footer";
import { useLoaded } from "../../state/loaded";
import { countText, sizeText } from "../../state/times";
import { texts } from "../../texts";

const words = texts.previews.parquet;
const SCHEMA_ROWS_MAX = 200;
const ROW_GROUPS_MAX = 50;
const NAME_CHARS_MAX = 200;

export interface ParquetPreviewProps {
  readonly place: ReadPlace;
  readonly properties: ReadProperties;
  /** Is shown where the file is none that can be read. */
  readonly otherwise: ComponentChildren;
}

export function ParquetPreview({ place, properties, otherwise }: ParquetPreviewProps): JSX.Element {
  const read = useLoaded(properties.etag, async (signal) => {
    const range = async (length: number, before: number): Promise<Uint8Array> =>
      new Uint8Array(await readRange(place, properties.sizeBytes - before - length, length, properties.etag, signal));
    if (properties.sizeBytes < TAIL_BYTES) throw new ParquetError("no_parquet");
    const length = footerLength(await range(TAIL_BYTES, 0), properties.sizeBytes);
    return readFooter(await range(length, TAIL_BYTES));
  });
  const error = read.error.value;
  if (error instanceof ParquetError) return <><p class="hint">{words.unreadable[error.why]}</p>{otherwise}</>;
  const footer = read.value.value;
  return (
    <>
      <Problem error={error} />
      {!footer && read.isBusy.value && <p class="muted" role="status">{texts.blobs.loading}</p>}
      {footer && <Footer footer={footer} />}
    </>
  );
}

function Footer({ footer }: { readonly footer: ParquetFooter }): JSX.Element {
  return (
    <>
      <Facts
        rows={[
          [words.rows, countText(footer.rows)],
          [words.columns, countText(footer.columns)],
          [words.rowGroups, countText(footer.rowGroups.length)],
          [words.codecs, footer.codecs.join(", ") || texts.previews.none],
          [words.createdBy, cut(footer.createdBy) || texts.previews.none],
          [words.version, countText(footer.version)],
          ...(footer.keys.length ? [[words.keys, cut(footer.keys.join(", "))] as const] : []),
        ]}
      />
      <h3>{words.schema}</h3>
      <Schema rows={footer.schema} />
      <h3>{words.rowGroups}</h3>
      <RowGroups groups={footer.rowGroups} />
    </>
  );
}

function Schema({ rows }: { readonly rows: readonly SchemaRow[] }): JSX.Element {
  const shown = rows.slice(0, SCHEMA_ROWS_MAX);
  return (
    <>
      <div class="scroll" tabIndex={0} role="group" aria-label={words.schema}>
        <table aria-label={words.schema}>
          <thead>
            <tr>
              <th scope="col">{words.name}</th>
              <th scope="col">{words.type}</th>
              <th scope="col">{words.repetition}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row, at) => (
              <tr key={at}>
                <th scope="row" style={{ paddingLeft: `${12 + 16 * Math.min(row.depth, 8)}px` }}>{cut(row.name)}</th>
                <td class="wrap"><code>{row.type}</code></td>
                <td>{row.repetition}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > shown.length && <p class="muted">{texts.previews.andMore(countText(rows.length - shown.length))}</p>}
    </>
  );
}

function RowGroups({ groups }: { readonly groups: readonly RowGroup[] }): JSX.Element {
  const shown = groups.slice(0, ROW_GROUPS_MAX);
  if (!shown.length) return <p class="muted">{texts.previews.none}</p>;
  return (
    <>
      <div class="scroll" tabIndex={0} role="group" aria-label={words.rowGroups}>
        <table aria-label={words.rowGroups}>
          <thead>
            <tr>
              <th scope="col" class="number">{words.rowGroup}</th>
              <th scope="col" class="number">{words.rows}</th>
              <th scope="col" class="number">{words.stored}</th>
              <th scope="col" class="number">{words.raw}</th>
              <th scope="col">{words.codecs}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((one, at) => (
              <tr key={at}>
                <td class="number">{countText(at + 1)}</td>
                <td class="number">{countText(one.rows)}</td>
                <td class="number">{sizeText(one.storedBytes)}</td>
                <td class="number">{sizeText(one.rawBytes)}</td>
                <td>{one.codecs.join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {groups.length > shown.length && <p class="muted">{texts.previews.andMore(countText(groups.length - shown.length))}</p>}
    </>
  );
}

function cut(text: string): string {
  return text.length > NAME_CHARS_MAX ? `${text.slice(0, NAME_CHARS_MAX)}\u2026` : text;
}
