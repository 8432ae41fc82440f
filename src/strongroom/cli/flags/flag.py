"""What a row of the table of flags has.

Lives here: the declaration of a flag, and the names that follow from it. Must not live here: the
flags (table.py), reading their values (given.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from strongroom.cli.flags.kinds import ValueKind

_PREFIX = "STRONGROOM_"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of `strongroom serve`.

    Attributes:
        name: without the dashes before it.
        kind: how a text becomes its value.
        help: its text in `--help`, without the default.
        default: its value when no source gives one. A flag that repeats has ().
        repeats: whether it may be given several times. In its environment variable, blanks
            separate the values; in the configuration file they are an array.
        setting: the field of Settings that gets the value as it is; None = settings.py uses it.
        excludes: names of flags that it does not go with.
        because: why it excludes them, as a predicate: `keeps nothing`.
        needs: names of flags, one of which must be given too, since it does nothing alone.
        own_variables: environment variables that settings.py reads, in a form of their own; empty
            = the usual one.
        not_in_file: why the configuration file may not have it; empty = the file may.
    """

    name: str
    kind: ValueKind
    help: str
    default: object = None
    repeats: bool = False
    setting: str | None = None
    excludes: tuple[str, ...] = ()
    because: str = ""
    needs: tuple[str, ...] = ()
    own_variables: tuple[str, ...] = ()
    not_in_file: str = ""

    @property
    def option(self) -> str:
        """The flag as it is typed."""
        return f"--{self.name}"

    @property
    def parameter(self) -> str:
        """Its name where a name must be an identifier."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        return self.own_variables[0] if self.own_variables else _PREFIX + self.parameter.upper()


@dataclass(frozen=True, slots=True)
class Section:
    """Flags under one heading of `--help`."""

    title: str
    flags: tuple[Flag, ...]
