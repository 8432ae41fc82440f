"""The values that a user has given, and from where: flag, environment, file, default.

Lives here: the order of the sources, and the name of each in an error. Must not live here: which
values go together (rules.py), what becomes of them (settings.py).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.flag import Flag

T = TypeVar("T")
_NO_FILE: Final[Mapping[str, Given]] = {}


class ValueSource(enum.IntEnum):
    """Where a value comes from; a higher source takes precedence over a lower one."""

    DEFAULT = 0
    FILE = 1
    ENVIRONMENT = 2
    COMMAND_LINE = 3


@dataclass(frozen=True, slots=True)
class Given:
    """One value. `label` is how an error names its source."""

    value: object
    source: ValueSource
    label: str

    @property
    def is_set(self) -> bool:
        """Whether a user gave it, other than by turning a switch off."""
        return self.source is not ValueSource.DEFAULT and self.value is not False

    def refuse(self, why: str) -> NoReturn:
        """End the command because of this value."""
        fail(exit_of(self.source), f"{self.label} {why}")


def exit_of(source: ValueSource) -> Exit:
    return Exit.USAGE if source is ValueSource.COMMAND_LINE else Exit.SETTINGS


class Values(Mapping[str, Given]):
    """The value of each flag, by the flag's name."""

    def __init__(self, given: Mapping[str, Given]) -> None:
        self._given = given

    def __getitem__(self, name: str) -> Given:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def one(self, name: str, kind: type[T]) -> T | None:
        """Return the value of a flag that may have none."""
        value = self[name].value
        assert value is None or isinstance(value, kind), name
        return value

    def known(self, name: str, kind: type[T]) -> T:
        """Return the value of a flag that has a default."""
        value = self.one(name, kind)
        assert value is not None, name
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the values of a flag that repeats."""
        return tuple(map(str, self.known(name, tuple)))

    def path(self, name: str) -> Path | None:
        return self.one(name, Path)


def given_values(
    flags: Sequence[Flag],
    command_line: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
    file: Mapping[str, Given] = _NO_FILE,
) -> Values:
    """The value of each flag. End the command if one cannot be read.

    `command_line` has the texts that were given with each flag, `file` the values of the
    configuration file.
    """
    higher = {flag.name: given_value(flag, command_line, environment) for flag in flags}
    lower = {name: one for name, one in file.items() if higher[name].source < one.source}
    return Values({**higher, **lower})


def given_value(
    flag: Flag, command_line: Mapping[str, Sequence[str]], environment: Mapping[str, str]
) -> Given:
    """Return the value of one flag, from above the configuration file, else the default."""
    if flag.name in command_line:
        texts = command_line[flag.name]
        return read_texts(flag, texts, ValueSource.COMMAND_LINE, flag.option)
    text = environment.get(flag.variable, "").strip()
    if text and not flag.own_variables:
        texts = text.split() if flag.repeats else [text]
        return read_texts(flag, texts, ValueSource.ENVIRONMENT, flag.variable)
    return Given(flag.default, ValueSource.DEFAULT, flag.option)


def read_texts(flag: Flag, texts: Sequence[str], source: ValueSource, label: str) -> Given:
    """Return the value that the texts of one source make. End the command if they make none."""
    values = []
    for text in texts:
        try:
            values.append(flag.kind.read(text))
        except ValueError as error:
            fail(exit_of(source), f"{label} {text!r}: {error}")
    return Given(tuple(values) if flag.repeats else values[-1], source, label)
