"""Reads the words of a command line into flags with values, as Azurite's users write them.

Lives here: the grammar, and errors about single words. Must not live here: which flags there are
(flags.py), what their values mean (settings.py). The grammar is that of Azurite: `--name value`,
`--name=value`, `-l value`, letters together as in `-sL`, and `true` after a switch.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from strongroom_azurite.commands import Command
from strongroom_azurite.flags import FLAGS, Flag, flags_of


class UsageError(Exception):
    """A command line that cannot be meant; the text says which word, and what to type."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line has.

    Attributes:
        values: pairs of a flag and its value, "" for a switch, in the order of the command line.
        words: the words that are neither flags nor their values.
    """

    values: tuple[tuple[Flag, str], ...] = ()
    words: tuple[str, ...] = field(default=())

    def has(self, name: str) -> bool:
        """Whether a flag is given."""
        return any(flag.name == name for flag, _ in self.values)

    def value(self, name: str) -> str | None:
        """Return a flag's value, the last one if it is given twice; None if it is not given."""
        found = [value for flag, value in self.values if flag.name == name]
        return found[-1] if found else None

    def flags(self) -> tuple[Flag, ...]:
        """Return each given flag once, in the order of the command line."""
        return tuple(dict.fromkeys(flag for flag, _ in self.values))

    def repeated(self) -> tuple[Flag, ...]:
        """Return the flags with a value that are given with two different values."""
        return tuple(
            flag
            for flag in self.flags()
            if len({value for one, value in self.values if one is flag}) > 1
        )


def parse(command: Command, arguments: Sequence[str]) -> Given:
    """Return what the command line has. Raises UsageError."""
    values: list[tuple[Flag, str]] = []
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        for flag, attached in _flags_in(command, word):
            values.append((flag, _value(flag, attached, rest)))
    return Given(tuple(values), tuple(words))


def _flags_in(command: Command, word: str) -> Iterator[tuple[Flag, str | None]]:
    """Yield the flags of a word, and the value after its equals sign; None if it has none."""
    name, equals, value = word.lstrip("-").partition("=")
    attached = value if equals else None
    if word.startswith("--") or len(name) <= 1:
        yield _flag(command, name, word.partition("=")[0]), attached
        return
    letters = [_letter(command, letter, word) for letter in name]
    for flag in letters[:-1]:
        if flag.value:
            raise UsageError(f"{word}: -{flag.short} needs a value; write it by itself")
        yield flag, None
    yield letters[-1], attached


def _flag(command: Command, name: str, typed: str) -> Flag:
    for flag in flags_of(command):
        if name and name in (flag.name, flag.short):
            return flag
    elsewhere = next((flag for flag in FLAGS if flag.name == name), None)
    if elsewhere is not None:
        raise UsageError(f"{command.name} has no flag {typed}; azurite has it")
    raise UsageError(f"there is no flag {typed}; the nearest is --{_nearest(command, name)}")


def _letter(command: Command, letter: str, word: str) -> Flag:
    for flag in flags_of(command):
        if flag.short == letter:
            return flag
    name = word.lstrip("-").partition("=")[0]
    raise UsageError(f"there is no flag {word}; the nearest is --{_nearest(command, name)}")


def _nearest(command: Command, name: str) -> str:
    """Return the name of the flag that is most like `name`: hyphens and case count for nothing."""
    plain = name.replace("-", "").replace("_", "").lower()
    return max(
        (flag.name for flag in flags_of(command)),
        key=lambda known: difflib.SequenceMatcher(None, plain, known.lower()).ratio(),
    )


def _value(flag: Flag, attached: str | None, rest: list[str]) -> str:
    """Return a flag's value; take it from `rest` if it is the next word there."""
    if not flag.value:
        if attached is None and rest and rest[0] in ("true", "false"):
            attached = rest.pop(0)
        if attached not in (None, "true"):
            raise UsageError(
                f"--{flag.name} is a switch; leave it out, or write it without a value"
            )
        return ""
    if attached is not None:
        return attached
    if not rest or rest[0].startswith("-"):
        raise UsageError(
            f"--{flag.name} needs a value: --{flag.name} {flag.value}, or "
            f"--{flag.name}={flag.value} if it begins with a hyphen"
        )
    return rest.pop(0)
