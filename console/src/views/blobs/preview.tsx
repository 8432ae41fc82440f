// A look into a blob or file, by ranges: an image, JSON, a table, a Parquet footer, a text, or first bytes.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Button } from "../../components/controls";
import { Notice, Problem } from "../../components/messages";
import { Panel } from "../../components/parts";
import { objectUrl, readName, type ReadPlace, type ReadProperties, readRange } from "../../protocol/across/download";
import { looksLikeParquet } from "../../protocol/parquet/footer";
import { useLoaded } from "../../state/loaded";
import { countText, sizeText } from "../../state/times";
import { texts } from "../../texts";
import { type CsvPart, looksLikeCsv, readCsv } from "./csv";
import { indented, isJson, jsonLines, looksLikeJson, startsAsJson } from "./json_text";
import { ParquetPreview } from "./parquet_preview";
import { asText, hexLines, IMAGE_BYTES_MAX, imageType, PREVIEW_BYTES, TEXT_BYTES_MAX } from "./preview_kinds";

const words = texts.blobs;
const more = texts.previews;

interface PreviewProps {
  readonly place: ReadPlace;
  readonly properties: ReadProperties;
}

/** What was read stays while others write: it is read again when the person asks for it. */
export function Preview({ place, properties }: PreviewProps): JSX.Element {
  const read = useSignal(properties);
  const isChanged = read.value.etag !== properties.etag;
  // Of the same content, the newest properties count: a tier may have changed.
  const shown = isChanged ? read.value : properties;
  return (
    <Panel title={words.preview} class="preview">
      <Notice text={isChanged ? words.previewChanged : ""}>
        <Button onClick={() => { read.value = properties; }}>{words.reload}</Button>
      </Notice>
      <Shown key={shown.etag} place={place} properties={shown} />
    </Panel>
  );
}

function Shown({ place, properties }: PreviewProps): JSX.Element {
  if (properties.sizeBytes === 0) return <p class="muted">{words.previewEmpty}</p>;
  if (properties.tier === "Archive") return <p class="muted">{words.previewArchived}</p>;
  // The browser decodes what is stored compressed, and cannot decode a part of it.
  if (properties.encoding) return <p class="muted">{words.previewEncoded(properties.encoding)}</p>;
  return <Read place={place} properties={properties} />;
}

function Read({ place, properties }: PreviewProps): JSX.Element {
  const read = useLoaded(properties.etag, async (signal) => {
    const start = new Uint8Array(await readRange(place, 0, PREVIEW_BYTES, properties.etag, signal));
    const wanted = wholeBytesMax(start);
    const isMore = properties.sizeBytes > start.length && properties.sizeBytes <= wanted;
    return isMore ? new Uint8Array(await readRange(place, 0, wanted, properties.etag, signal)) : start;
  });
  const bytes = read.value.value;
  return (
    <>
      <Problem error={read.error.value} />
      {!bytes && read.isBusy.value && <p class="muted" role="status">{words.loading}</p>}
      {bytes && <Kind bytes={bytes} place={place} properties={properties} />}
    </>
  );
}

/** Return up to which size a blob that begins so is read whole. */
function wholeBytesMax(start: Uint8Array): number {
  if (imageType(start) !== null) return IMAGE_BYTES_MAX;
  return startsAsJson(asText(start, true) ?? "") ? TEXT_BYTES_MAX : 0;
}

type KindProps = PreviewProps & { readonly bytes: Uint8Array<ArrayBuffer> };

function Kind({ bytes, place, properties }: KindProps): JSX.Element {
  const isCut = bytes.length < properties.sizeBytes;
  const image = imageType(bytes);
  if (image && !isCut) return <Picture bytes={bytes} type={image} name={readName(place)} />;
  if (looksLikeParquet(bytes)) return <ParquetPreview place={place} properties={properties} otherwise={<Hex bytes={bytes} />} />;
  const text = asText(bytes, isCut);
  if (text === null) return <Hex bytes={bytes} />;
  return <Text text={text} bytes={bytes} place={place} properties={properties} />;
}

function Text({ text, bytes, place, properties }: KindProps & { readonly text: string }): JSX.Element {
  const isCut = bytes.length < properties.sizeBytes;
  const cut = isCut ? words.previewCut(sizeText(bytes.length), sizeText(properties.sizeBytes)) : "";
  const readable = readableOf(text, isCut, place, properties);
  if (readable) return <Either readable={readable} text={text} cut={cut} />;
  return (
    <>
      {cut && <p class="hint">{cut}</p>}
      <pre tabIndex={0}>{text}</pre>
    </>
  );
}

interface Readable {
  /** What is shown of it; "" for all. */
  readonly hint: string;
  readonly content: ComponentChildren;
}

/** Return a text as a table or with line ends; null if it is to be shown as it is. */
function readableOf(text: string, isCut: boolean, place: ReadPlace, properties: ReadProperties): Readable | null {
  if (looksLikeCsv(readName(place), properties.contentType)) {
    const part = readCsv(text, isCut);
    return part.rows.length ? { hint: csvHint(part), content: <CsvTable part={part} /> } : null;
  }
  if (!startsAsJson(text)) return null;
  const records = jsonLines(text, isCut);
  if (records) return { hint: more.records(countText(records.length)), content: <pre tabIndex={0}>{records.join("\n\n")}</pre> };
  const isReadable = isCut ? looksLikeJson(readName(place), properties.contentType) : isJson(text);
  return isReadable ? { hint: "", content: <pre tabIndex={0}>{indented(text)}</pre> } : null;
}

/** What was made of a text, or the text as it is stored. */
function Either({ readable, text, cut }: { readonly readable: Readable; readonly text: string; readonly cut: string }): JSX.Element {
  const isPlain = useSignal(false);
  const hint = isPlain.value ? cut : [readable.hint, cut].filter(Boolean).join(" ");
  return (
    <>
      <div class="preview-choice">
        <p class="hint">{hint}</p>
        <Button pressed={isPlain.value} onClick={() => { isPlain.value = !isPlain.value; }}>{more.asStored}</Button>
      </div>
      {isPlain.value ? <pre tabIndex={0}>{text}</pre> : readable.content}
    </>
  );
}

function Hex({ bytes }: { readonly bytes: Uint8Array }): JSX.Element {
  return (
    <>
      <p class="hint">{words.previewHex}</p>
      <pre tabIndex={0}>{hexLines(bytes)}</pre>
    </>
  );
}

function Picture({ bytes, type, name }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly type: string; readonly name: string }): JSX.Element {
  const url = useSignal("");
  useEffect(() => {
    const made = objectUrl(bytes.buffer, type);
    url.value = made;
    return () => { URL.revokeObjectURL(made); };
  }, [bytes]);
  return <div class="picture">{url.value && <img src={url.value} alt={words.previewImage(name)} />}</div>;
}

function csvHint({ rows, columns }: CsvPart): string {
  const width = Math.max(...rows.map((row) => row.length));
  const hidden = columns > width ? ` ${more.columns(countText(width), countText(columns))}` : "";
  return words.previewRows(countText(rows.length - 1)) + hidden;
}

function CsvTable({ part }: { readonly part: CsvPart }): JSX.Element {
  const [head = [], ...body] = part.rows;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={words.previewTable}>
      <table aria-label={words.previewTable}>
        <thead><tr>{head.map((cell, at) => <th key={at} scope="col">{cell}</th>)}</tr></thead>
        <tbody>{body.map((row, index) => <tr key={index}>{row.map((cell, at) => <td key={at}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}
