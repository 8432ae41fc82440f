// From page to page. Each page has its own address, so the browser's way back leads to the one before.

import type { JSX } from "preact";

import { Button } from "./controls";
import { navigate } from "../state/router";
import { texts } from "../texts";

const words = texts.blobs;

export interface PagerProps {
  /** How many rows this page has. */
  readonly count: string;
  readonly next: string;
  readonly marker: string;
  readonly isBusy: boolean;
  readonly to: (marker: string) => string;
}

export function Pager({ count, next, marker, isBusy, to }: PagerProps): JSX.Element {
  return (
    <div class="pager">
      <span class="muted" role="status">{isBusy ? words.loading : words.rowCount(count, next !== "")}</span>
      <span class="actions">
        <Button kind="quiet" disabled={marker === ""} onClick={() => { navigate(to("")); }}>{words.firstPage}</Button>
        <Button disabled={next === "" || isBusy} onClick={() => { navigate(to(next)); }}>{words.nextPage}</Button>
      </span>
    </div>
  );
}
