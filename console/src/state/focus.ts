// Where the focus goes when what has it leaves the document: a button whose act is done, a row that
// is gone. Browsers would let it fall to the beginning of the page, and say nothing.

let trail: readonly HTMLElement[] = [];

/** Keep the focus near: on the innermost element that held what is gone. It is no control, so that a key pressed twice does nothing. */
export function startFocus(): void {
  document.addEventListener("focusin", remember);
  new MutationObserver(restore).observe(document.body, { childList: true, subtree: true });
}

function remember(event: FocusEvent): void {
  trail = event.target instanceof HTMLElement ? ancestors(event.target) : [];
}

function ancestors(element: HTMLElement): HTMLElement[] {
  const found: HTMLElement[] = [];
  for (let one: HTMLElement | null = element; one && one !== document.body; one = one.parentElement) found.push(one);
  return found;
}

function restore(): void {
  const [focused] = trail;
  if (!focused || focused.isConnected || (document.activeElement && document.activeElement !== document.body)) return;
  const near = trail.find((one) => one.isConnected);
  trail = [];
  if (!near) return;
  const isAdded = !near.hasAttribute("tabindex");
  if (isAdded) near.tabIndex = -1;
  near.focus({ preventScroll: true });
  if (isAdded) near.addEventListener("blur", () => { near.removeAttribute("tabindex"); }, { once: true });
}
