// What a sign-in lacks for a part of a view, or for an act: the part says so, the button is off.

import type { JSX } from "preact";

import { texts } from "../texts";
import { Button } from "./controls";
import { Empty } from "./messages";

const words = texts.blobs;

/** Return the text of a missing right: "key", or letters of which one would do; "" for null. */
export function rightText(letters: string | null): string {
  if (letters === null) return "";
  if (letters === "key") return words.rights.key;
  return [...letters].map((one) => words.rights[one as keyof typeof words.rights]).join(words.or);
}

/** In place of a part of the view that the sign-in may not see. */
export function Lacks({ right }: { readonly right: string }): JSX.Element {
  return <Empty title={words.missing(right)}>{words.missingRemedy}</Empty>;
}

export interface RightButtonProps {
  /** The text of the right that the sign-in lacks for this; "" if it lacks none that is known. */
  readonly right: string;
  readonly text: string;
  readonly name?: string;
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  readonly type?: "button" | "submit";
  readonly disabled?: boolean;
  readonly onClick?: () => void;
}

/** A button that is off, and says why, where the sign-in lacks the right for it. */
export function RightButton({ right, text, name, kind = "plain", type = "button", disabled = false, onClick }: RightButtonProps): JSX.Element {
  return (
    <span class="act" title={right ? words.needsRight(right) : undefined}>
      <Button kind={kind} type={type} disabled={disabled || right !== ""} {...(onClick ? { onClick } : {})} {...(name ? { name } : {})}>{text}</Button>
    </span>
  );
}
