// A look into a blob or file, by ranges: an image, JSON, a table, a text, or its first bytes.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { Problem } from "../../components/messages";
import { Panel } from "../../components/parts";
import { objectUrl, readName, type ReadPlace, type ReadProperties, readRange } from "../../protocol/blob/download";
import { useLoaded } from "../../state/loaded";
import { countText, sizeText } from "../../state/times";
import { texts } from "../../texts";
import { asText, csvRows, hexLines, imageType, looksLikeCsv, prettyJson, PREVIEW_BYTES, WHOLE_BYTES } from "./preview_kinds";

const words = texts.blobs;

export interface PreviewProps {
  readonly place: ReadPlace;
  readonly properties: ReadProperties;
}

export function Preview({ place, properties }: PreviewProps): JSX.Element {
  return (
    <Panel title={words.preview} class="preview">
      <Shown place={place} properties={properties} />
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
    const isMore = properties.sizeBytes > start.length && properties.sizeBytes <= WHOLE_BYTES;
    const isWanted = isMore && (imageType(start) !== null || /^\s*[[{]/.test(asText(start, true) ?? ""));
    return isWanted ? new Uint8Array(await readRange(place, 0, WHOLE_BYTES, properties.etag, signal)) : start;
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

function Kind({ bytes, place, properties }: PreviewProps & { readonly bytes: Uint8Array<ArrayBuffer> }): JSX.Element {
  const isCut = bytes.length < properties.sizeBytes;
  const image = imageType(bytes);
  if (image && !isCut) return <Picture bytes={bytes} type={image} name={readName(place)} />;
  const text = asText(bytes, isCut);
  const cut = isCut && <p class="hint">{words.previewCut(sizeText(bytes.length), sizeText(properties.sizeBytes))}</p>;
  if (text === null) {
    return (
      <>
        <p class="hint">{words.previewHex}</p>
        <pre tabIndex={0}>{hexLines(bytes)}</pre>
      </>
    );
  }
  if (looksLikeCsv(readName(place), properties.contentType)) return <CsvTable rows={csvRows(text, isCut)} />;
  return (
    <>
      {cut}
      <pre tabIndex={0}>{(isCut ? null : prettyJson(text)) ?? text}</pre>
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

function CsvTable({ rows }: { readonly rows: readonly (readonly string[])[] }): JSX.Element {
  const [head = [], ...body] = rows;
  return (
    <>
      <p class="hint">{words.previewRows(countText(body.length))}</p>
      <div class="scroll" tabIndex={0} role="group" aria-label={words.previewTable}>
        <table aria-label={words.previewTable}>
          <thead><tr>{head.map((cell, at) => <th key={at} scope="col">{cell}</th>)}</tr></thead>
          <tbody>{body.map((row, index) => <tr key={index}>{row.map((cell, at) => <td key={at}>{cell}</td>)}</tr>)}</tbody>
        </table>
      </div>
    </>
  );
}
