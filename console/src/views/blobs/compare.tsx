// A dialog that compares any two states of a blob: now, its snapshots, its versions.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { Button, Select } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { Problem } from "../../components/messages";
import type { BlobPlace } from "../../protocol/blob/place";
import { useLoaded } from "../../state/loaded";
import { countText } from "../../state/times";
import { texts } from "../../texts";
import { type Compared, compare, type ComparedRow } from "./compared";
import { BEGINNING_LINES, hunksOf, type Line, type LineDiff } from "./line_diff";

const words = texts.compare;
const LINES_MAX = 2000;
const LINE_CHARS_MAX = 2000;

export interface NamedState {
  readonly key: string;
  readonly text: string;
  readonly place: BlobPlace;
}

export interface CompareProps {
  /** At least one; the newest first. */
  readonly states: readonly NamedState[];
  /** The key of the one to begin with. */
  readonly chosen: string;
  readonly onClose: () => void;
}

export function Compare({ states, chosen, onClose }: CompareProps): JSX.Element {
  const before = useSignal(chosen);
  const after = useSignal(states.find((one) => one.key !== chosen)?.key ?? chosen);
  const options = states.map((one) => [one.key, one.text] as const);
  const placeOf = (key: string): BlobPlace | undefined => states.find((one) => one.key === key)?.place;
  const left = placeOf(before.value);
  const right = placeOf(after.value);
  return (
    <Dialog title={words.title} onClose={onClose} wide>
      <div class="compare-choice">
        <Select label={words.before} value={before.value} options={options} onChange={(value) => { before.value = value; }} />
        <Select label={words.after} value={after.value} options={options} onChange={(value) => { after.value = value; }} />
      </div>
      {left && right && <Both key={`${before.value} ${after.value}`} before={left} after={right} />}
      <div class="actions"><Button onClick={onClose}>{words.close}</Button></div>
    </Dialog>
  );
}

function Both({ before, after }: { readonly before: BlobPlace; readonly after: BlobPlace }): JSX.Element {
  const read = useLoaded("", (signal) => compare(before, after, signal));
  const found = read.value.value;
  return (
    <div class="compared">
      <Problem error={read.error.value} />
      <p role="status">{found ? words.verdicts[found.verdict] : read.isBusy.value ? texts.blobs.loading : ""}</p>
      {found && <Found found={found} />}
    </div>
  );
}

function Found({ found }: { readonly found: Compared }): JSX.Element {
  return (
    <>
      {found.diff && <Text diff={found.diff} />}
      <Rows rows={found.rows} />
    </>
  );
}

function Rows({ rows }: { readonly rows: readonly ComparedRow[] }): JSX.Element {
  const other = rows.filter((row) => row.before !== row.after);
  const same = rows.filter((row) => row.before === row.after).map((row) => row.name);
  return (
    <>
      {other.length > 0 && <Differences rows={other} />}
      {same.length > 0 && <p class="muted">{words.same(same.join(", "))}</p>}
    </>
  );
}

function Differences({ rows }: { readonly rows: readonly ComparedRow[] }): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={words.properties}>
      <table aria-label={words.properties}>
        <thead>
          <tr>
            <th scope="col">{words.property}</th>
            <th scope="col">{words.before}</th>
            <th scope="col">{words.after}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              <td class="wrap"><code>{row.before || words.none}</code></td>
              <td class="wrap"><code>{row.after || words.none}</code></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Text({ diff }: { readonly diff: LineDiff }): JSX.Element {
  let left = LINES_MAX;
  const whole = hunksOf(diff.lines);
  const isCut = whole.reduce((sum, hunk) => sum + hunk.lines.length, 0) > LINES_MAX;
  const hunks = whole.map((hunk) => {
    const lines = hunk.lines.slice(0, left);
    left -= lines.length;
    return { ...hunk, lines };
  });
  return (
    <>
      <p class="hint">
        {diff.extent === "none" ? words.tooLarge(countText(BEGINNING_LINES)) : words.lines(countText(diff.removed), countText(diff.added))}
        {diff.extent === "ends" && ` ${words.notExact}`}
        {isCut && ` ${words.cut(countText(LINES_MAX))}`}
      </p>
      <div class="scroll diff" tabIndex={0} role="group" aria-label={words.diff}>
        <table aria-label={words.diff}>
          <thead class="unseen">
            <tr>
              <th scope="col">{words.lineBefore}</th>
              <th scope="col">{words.lineAfter}</th>
              <th scope="col">{words.change}</th>
              <th scope="col">{words.line}</th>
            </tr>
          </thead>
          {hunks.map((hunk, at) => (hunk.lines.length || !isCut) && (
            <tbody key={at}>
              {hunk.skipped > 0 && <tr class="skipped"><td colSpan={4}>{words.skipped(hunk.skipped)}</td></tr>}
              {hunk.lines.map((line) => <DiffLine key={`${line.before} ${line.after}`} line={line} />)}
            </tbody>
          ))}
        </table>
      </div>
    </>
  );
}

const SIGNS = { same: "", removed: "\u2212", added: "+" } as const;

function DiffLine({ line }: { readonly line: Line }): JSX.Element {
  const { kind } = line;
  const isOpen = kind !== "same" && !line.text.endsWith("\n");
  return (
    <tr class={kind}>
      <td class="number">{line.before}</td>
      <td class="number">{line.after}</td>
      <td class="sign">{kind !== "same" && <><span aria-hidden="true">{SIGNS[kind]}</span><span class="unseen">{words.kinds[kind]}</span></>}</td>
      <td class="line"><code>{shownLine(line.text)}</code>{isOpen && <span class="tag">{words.noLineEnd}</span>}</td>
    </tr>
  );
}

/** A carriage return before the end of the line is shown, since it may be all that differs. */
function shownLine(text: string): string {
  const line = text.replace(/\r?\n$/, (end) => (end.length > 1 ? "\u240d" : ""));
  return line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}\u2026` : line;
}
