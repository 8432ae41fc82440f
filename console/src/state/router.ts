// Addresses. A view's address is /VIEW/NAME/NAME?key=value; each name is percent-encoded by itself.
// No credential is ever in an address.

import { signal } from "@preact/signals";

export interface Address {
  /** The first segment: which view. */
  readonly view: string;
  /** The segments after it, decoded. */
  readonly names: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export const address = signal<Address>({ view: "", names: [], query: {} });

export function readAddress(path: string, search: string): Address {
  const [view = "", ...names] = path.split("/").slice(1).filter(Boolean).map(decoded);
  return { view, names, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** Return the address as text: `addressOf("blobs", ["devstoreaccount1", "a b"])`. */
export function addressOf(view: string, names: readonly string[] = [], query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return `/${[view, ...names].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/** Show another address. `replace`: the one before gets no entry in the history. */
export function navigate(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  readLocation();
}

/** Follow the address bar, and take over clicks on links to addresses of the page. */
export function startRouter(): void {
  addEventListener("popstate", readLocation);
  document.addEventListener("click", followLink);
  readLocation();
}

function readLocation(): void {
  address.value = readAddress(location.pathname, location.search);
}

function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.origin !== location.origin) return;
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!isPlain || event.defaultPrevented || link.target || link.hasAttribute("download") || link.hash) return;
  event.preventDefault();
  navigate(`${link.pathname}${link.search}`);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
