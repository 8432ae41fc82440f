// What is known of a file or directory: its attributes, times, permission, content headers, lease.

import type { ComponentChildren, JSX } from "preact";
import { useSignal } from "@preact/signals";

import { Button } from "../../components/controls";
import { LeaseState } from "../../components/lease";
import { Facts, Panel, Time } from "../../components/parts";
import type { NodeProperties } from "../../protocol/files/nodes";
import type { PathPlace } from "../../protocol/files/place";
import { permissionOf } from "../../protocol/files/shares";
import { countText, sizeText } from "../../state/times";
import { complain } from "../../state/toasts";
import { texts } from "../../texts";
import { lacking } from "./place";

const words = texts.files;
const names = { ...texts.blobs.facts, ...texts.files.facts };

export interface NodeFactsProps {
  readonly place: PathPlace;
  readonly properties: NodeProperties;
  readonly isDirectory: boolean;
  readonly lease?: { readonly state: string; readonly duration: string };
}

type Row = readonly [string, ComponentChildren];

export function NodeFacts(props: NodeFactsProps): JSX.Element {
  const { place, properties } = props;
  return (
    <Panel title={texts.blobs.tabs.properties}>
      <Facts rows={rowsOf(props)} />
      <Permission key={properties.smb.permissionKey} place={place} permissionKey={properties.smb.permissionKey} />
    </Panel>
  );
}

function rowsOf({ place, properties: one, isDirectory, lease }: NodeFactsProps): readonly Row[] {
  const { content, smb } = one;
  const ofFile: readonly Row[] = [
    [names.size, <span title={`${countText(one.sizeBytes)} B`}>{sizeText(one.sizeBytes)}</span>],
    [names.contentType, content.contentType],
    ...(place.snapshot || !lease ? [] : [[names.lease, <LeaseState place={place} state={lease.state} duration={lease.duration} />] as const]),
  ];
  const optional: readonly Row[] = [
    [names.encoding, content.encoding],
    [names.language, content.language],
    [names.disposition, content.disposition],
    [names.cacheControl, content.cacheControl],
    [names.md5, content.md5 && <code>{content.md5}</code>],
    [names.copy, one.copyStatus && `${one.copySource.split("?")[0] ?? ""} (${one.copyStatus})`],
  ];
  return [
    ...(isDirectory ? [] : ofFile),
    [names.attributes, smb.attributes || texts.blobs.none],
    [names.created, smb.creation && <Time at={smb.creation} />],
    [names.written, smb.lastWrite && <Time at={smb.lastWrite} />],
    [names.changed, smb.change && <Time at={smb.change} />],
    [names.modified, one.modified && <Time at={one.modified} />],
    [names.etag, <code>{one.etag}</code>],
    ...(isDirectory ? [] : optional.filter(([, value]) => value)),
    [names.fileId, <code>{smb.id}</code>],
    ...one.metadata.map(([name, value]): Row => [`${names.metadata}: ${name}`, value]),
  ];
}

/** The key of the security descriptor, and its text when it is asked for. */
function Permission({ place, permissionKey }: { readonly place: PathPlace; readonly permissionKey: string }): JSX.Element | null {
  const text = useSignal<string | null>(null);
  if (!permissionKey) return null;
  const show = (): void => {
    permissionOf(place, permissionKey).then((found) => { text.value = found; }, complain);
  };
  return (
    <div class="permission">
      <p><span class="muted">{names.permissionKey}</span> <code>{permissionKey}</code></p>
      {text.value !== null && <pre tabIndex={0}>{text.value}</pre>}
      {text.value === null && <div class="actions"><Button kind="quiet" disabled={lacking("readPermission") !== ""} onClick={show}>{words.showPermission}</Button></div>}
    </div>
  );
}
