// Reading XML answers of the services: elements by name, texts of children.

/** Return the root of a document. Raises: Error if the text is no XML. */
export function parseXml(text: string): Element {
  const root = new DOMParser().parseFromString(text, "application/xml").documentElement;
  if (root.nodeName === "parsererror" || root.getElementsByTagName("parsererror").length) {
    throw new Error("the service answered what is no XML");
  }
  return root;
}

export function childrenOf(element: Element | null, name: string): Element[] {
  return element ? [...element.children].filter((one) => one.nodeName === name) : [];
}

export function childOf(element: Element | null, name: string): Element | null {
  return childrenOf(element, name)[0] ?? null;
}

/** Return the text of a child; "" without one. */
export function textOf(element: Element | null, name: string): string {
  return childOf(element, name)?.textContent ?? "";
}

/** Return a Name, which is percent-encoded where XML cannot hold it. */
export function nameOf(element: Element | null, name = "Name"): string {
  const child = childOf(element, name);
  const text = child?.textContent ?? "";
  return child?.getAttribute("Encoded") === "true" ? decodeURIComponent(text) : text;
}

/** Return the children of a child as pairs of name and text: metadata. */
export function pairsOf(element: Element | null, name: string): [string, string][] {
  const child = childOf(element, name);
  return child ? [...child.children].map((one): [string, string] => [one.nodeName, one.textContent ?? ""]) : [];
}

export function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
