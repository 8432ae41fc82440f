// A command of the terminal, and a button that copies it.

import type { JSX } from "preact";

import { Button } from "../../components/controls";
import { Icon } from "../../components/icons";
import { copyText } from "../../components/parts";
import { texts } from "../../texts";

const words = texts.access;

export interface CommandProps {
  /** What it does, for the button's name: "rotate shop". */
  readonly does: string;
  readonly command: string;
  /** Put behind the command; "" where it is not known. */
  readonly flag: string;
}

export function Command({ does, command, flag }: CommandProps): JSX.Element {
  const whole = flag ? `${command} ${flag}` : command;
  return (
    <p class="command">
      <code>{whole}</code>
      <Button kind="quiet" name={words.copyNamed(does)} onClick={() => void copyText(whole, texts.dialogs.copied)}>
        <Icon name="copy" />
        <span>{words.copy}</span>
      </Button>
    </p>
  );
}
