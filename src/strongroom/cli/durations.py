"""Durations on the command line: seconds, or a number with a unit, such as 5s, 10m or 30d.

Lives here: the parser of every flag that takes a duration.
"""

from __future__ import annotations

import math
import re

import typer

_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h|d|)", re.ASCII)


def seconds(text: str | float) -> float:
    """A default is a number already.

    Raises: typer.BadParameter: the text is no duration, or it is negative.
    """
    if not isinstance(text, str):
        return float(text)
    match = _DURATION.fullmatch(text.strip())
    value_s = math.inf if match is None else float(match[1]) * _UNITS_S[match[2]]
    if not math.isfinite(value_s):
        raise typer.BadParameter(f"{text!r} is no duration: give seconds, or 5s, 10m, 2h, 30d")
    return value_s
