"""Which values go together, whatever source they come from.

Lives here: the meaning of `excludes` and `needs` in the table of flags. Must not live here: the
rows (table.py). A value of a higher source drops those of lower sources that it excludes: with
STRONGROOM_DATA set, `--in-memory` keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strongroom.cli.flags.flag import Flag
from strongroom.cli.flags.given import Given, Values, ValueSource


def agreed(flags: Sequence[Flag], values: Values) -> Values:
    """Return the values that count. End the command if two of one source exclude each other, or
    one does nothing without another."""
    dropped = {name for flag in flags for name in _dropped(flag, values)}
    unset = {flag.name: Given(flag.default, ValueSource.DEFAULT, flag.option) for flag in flags}
    kept = Values({**values, **{name: unset[name] for name in dropped}})
    for flag in flags:
        _refuse_alone(flag, kept)
    return kept


def _dropped(flag: Flag, values: Values) -> Iterator[str]:
    """Yield the names of values that a higher source overrules, among the flag and those that it
    excludes."""
    one = values[flag.name]
    for name in flag.excludes:
        other = values[name]
        if one.is_set and other.is_set:
            if one.source is other.source:
                one.refuse(f"{flag.because}; it does not go with {other.label}")
            yield flag.name if one.source < other.source else name


def _refuse_alone(flag: Flag, values: Values) -> None:
    """Refuse a value that needs others, none of which is set.

    It is no mistake if a higher source has turned them off.
    """
    given, needed = values[flag.name], [values[name] for name in flag.needs]
    if not given.is_set or not needed or any(one.is_set for one in needed):
        return
    if all(one.source <= given.source for one in needed):
        names = " or ".join(f"--{name}" for name in flag.needs)
        given.refuse(f"does nothing without {names}")
