// The attributes of SMB as the service writes them: names with " | " between them.

/** Those that a person may set; Directory is what a directory is. */
export const SETTABLE = ["ReadOnly", "Hidden", "System", "Archive", "Temporary", "NotContentIndexed"] as const;
export type Settable = (typeof SETTABLE)[number];

const NONE = "None";

export function attributesOf(text: string): string[] {
  return text.split("|").map((name) => name.trim()).filter((name) => name !== "" && name !== NONE);
}

/** Return a text of attributes in which one is set or not; others stay, those that cannot be set too. */
export function withAttribute(text: string, name: Settable, isSet: boolean): string {
  const others = attributesOf(text).filter((one) => one !== name);
  const all = isSet ? [...others, name] : others;
  return all.length ? all.join(" | ") : NONE;
}
