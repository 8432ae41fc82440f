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

export function Command(props: CommandProps): JSX.Element {
  return (
    <p class="command">
      <code>{wholeOf(props)}</code>
      <CopyCommand {...props} />
    </p>
  );
}

/** The button alone, for cells; the command is in its title. */
export function CopyCommand(props: CommandProps): JSX.Element {
  const whole = wholeOf(props);
  return (
    <span title={whole}>
      <Button kind="quiet" name={words.copyNamed(props.does)} onClick={() => void copyText(whole, texts.dialogs.copied)}>
        <Icon name="copy" />
        <span>{words.copy}</span>
      </Button>
    </span>
  );
}

function wholeOf({ command, flag }: CommandProps): string {
  return flag ? `${command} ${flag}` : command;
}
