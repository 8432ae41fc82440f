"""The kinds of values that a flag takes: how a text becomes a value.

Lives here: one reader for each kind, used for the command line, the environment and the
configuration file alike. Must not live here: which flag has which kind (table.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PORT_MAX: Final = 65535
# Kubernetes sets STRONGROOM_BLOB_PORT and its like for Services of such names.
_KUBERNETES: Final = (
    "; Kubernetes sets this for a Service of that name: set enableServiceLinks: false for the pod"
)
_HOST_NAME: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_UNITS_S: Final = {"h": 3600, "m": 60, "s": 1}
_SWITCHED: Final = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value.

    Attributes:
        placeholder: stands for the value in `--help`; empty for a switch.
        read: returns the value of a text. Raises ValueError, which says what to give instead.
        in_toml: the type that a configuration file has for such a value.
        below: returns the value as seen from a folder, for values that name a file.
    """

    placeholder: str
    read: Callable[[str], object]
    in_toml: type[str] | type[int] | type[bool] = str
    below: Callable[[object, Path], object] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether the flag takes no value on the command line."""
        return self.in_toml is bool


def port(most: int = PORT_MAX) -> ValueKind:
    """Return the kind of a port; 0 is one too."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= most):
            raise ValueError(f"give a port from 0 to {most}{_KUBERNETES * ('://' in text)}")
        return int(text)

    return ValueKind("PORT", read, int)


def whole_number(placeholder: str, most: int) -> ValueKind:
    """Return the kind of a number from 0 on."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= most):
            raise ValueError(f"give a whole number from 0 to {most}")
        return int(text)

    return ValueKind(placeholder, read, int)


def minutes() -> ValueKind:
    """Return the kind of a number of minutes, from 1 to a day."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= 1440):
            raise ValueError("give minutes from 1 to 1440")
        return int(text)

    return ValueKind("MINUTES", read, int)


def choice(*names: str) -> ValueKind:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"give one of {', '.join(names)}" if names[1:] else f"give {names[0]}")
        return text

    return ValueKind("|".join(names), read)


def text(placeholder: str = "TEXT") -> ValueKind:
    """Return the kind of a value that is used as it is."""
    return ValueKind(placeholder, str)


def text_of(value: object) -> str:
    """Return the text from which `read` makes a value that has its type already."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _switched(text: str) -> bool:
    switch = _SWITCHED.get(text.lower())
    if switch is None:
        raise ValueError("give true or false (or 1 or 0)")
    return switch


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError("give a path")
    return Path(text)


def _path_below(value: object, folder: Path) -> Path:
    assert isinstance(value, Path)
    return folder / value


def _file_below(value: object, folder: Path) -> str:
    return str(value) if "://" in str(value) else str(folder / str(value))


def _delay_s(text: str) -> float:
    """Return the seconds of `15h`, `30m`, `10s` or `0s`."""
    unit_s, number = _UNITS_S.get(text[-1:]), text[:-1]
    if unit_s is None or not (number.isascii() and number.isdigit() and len(number) <= 6):
        raise ValueError("give a time such as 15h, 30m or 10s")
    return float(int(number) * unit_s)


def _host_name(text: str) -> str:
    name = text.strip().lower().removesuffix(".")
    if not _HOST_NAME.fullmatch(name):
        raise ValueError("give a name like store.example.net, without a port")
    return name


def _suffix(text: str) -> str:
    domain = text.lower().strip(".")
    if not domain:
        raise ValueError("give a domain like blob.example.net")
    return domain


SWITCH: Final = ValueKind("", _switched, bool)
DIRECTORY: Final = ValueKind("DIR", _path, below=_path_below)
FILE: Final = ValueKind("FILE", _path, below=_path_below)
FILE_OR_URL: Final = ValueKind("FILE|URL", str, below=_file_below)
DURATION: Final = ValueKind("TIME", _delay_s)
HOST_NAME: Final = ValueKind("NAME", _host_name)
DOMAIN: Final = ValueKind("DOMAIN", _suffix)
