// Small drawings beside words. They say nothing that the words do not, so readers skip them.

import type { JSX } from "preact";

const PATHS = {
  overview: "M3 12h4l2-6 4 12 2-6h6",
  requests: "M4 6h16M4 12h10M4 18h13",
  blobs: "M4 7l8-4 8 4v10l-8 4-8-4zM4 7l8 4 8-4M12 11v10",
  queues: "M4 5h16v4H4zM4 11h16v4H4zM4 17h16v3H4z",
  tables: "M4 5h16v14H4zM4 10h16M10 5v14",
  files: "M3 6h6l2 3h10v10H3z",
  coordination: "M12 3v6M5 21l7-12 7 12M5 21h14",
  access: "M8 11V8a4 4 0 0 1 8 0v3M5 11h14v9H5z",
  theme: "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  out: "M14 4h6v16h-6M4 12h11M11 8l4 4-4 4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The mark of the product: a vault's wheel. */
export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect x="2" y="2" width="28" height="28" rx="7" />
      <circle cx="16" cy="16" r="7.5" />
      <path d="M16 5.5v5M16 21.5v5M5.5 16h5M21.5 16h5" />
    </svg>
  );
}
