// Where one is: links to what lies above, and the name as a heading.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { texts } from "../texts";

export interface Crumb {
  readonly text: string;
  readonly href: string;
}

/** Where one is; the last name is the heading, and takes the focus when one comes here. */
export function Crumbs({ crumbs, last, suffix }: { readonly crumbs: readonly Crumb[]; readonly last: string; readonly suffix?: string }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => { heading.current?.focus(); }, [last]);
  return (
    <div class="place">
      <nav aria-label={texts.blobs.place}>
        <ol class="crumbs">
          {crumbs.map((one) => <li key={one.href}><a href={one.href}>{one.text}</a></li>)}
        </ol>
      </nav>
      <h2 ref={heading} tabIndex={-1}>{last}{suffix && <span class="tag">{suffix}</span>}</h2>
    </div>
  );
}
