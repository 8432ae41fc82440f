"""The configuration file of `strongroom serve`: TOML, with the names of flags as keys.

Lives here: reading it, and errors that name file, line and key. Source: TOML 1.0.0.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.flag import Flag
from strongroom.cli.flags.given import Given, ValueSource, read_texts
from strongroom.cli.flags.kinds import text_of
from strongroom.platform.files import rights_of_others
from strongroom.setup.lines import line_of

_BYTES_MAX: Final = 1024 * 1024
_NAMES: Final = {str: 'a text, such as "{}"', int: "a number", bool: "true or false"}


def values_of_file(path: Path, flags: Sequence[Flag]) -> Mapping[str, Given]:
    """Return the values in a configuration file, by the flag's name. Relative paths are relative
    to its folder. End the command if it cannot be used."""
    text = _text(path)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number too long, and too deep nesting
        fail(Exit.SETTINGS, f"{path} is not TOML: {error}")
    known = {flag.name: flag for flag in flags}
    values = {}
    for key, value in document.items():
        label = f"{path}:{line_of(text, [key])}: {key}"
        flag = known.get(key)
        if flag is None:
            _refuse_unknown(label, key, [flag.name for flag in flags if not flag.not_in_file])
        if flag.not_in_file:
            fail(Exit.SETTINGS, f"{label} cannot be given here: {flag.not_in_file}")
        values[key] = _given(flag, value, label, path.parent)
    return values


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            _refuse_writable(path, file.fileno())
            content = file.read(_BYTES_MAX + 1)
        if len(content) > _BYTES_MAX:
            fail(Exit.SETTINGS, f"{path} has more than {_BYTES_MAX} bytes: is it the right file?")
        return content.decode()
    except OSError as error:
        fail(Exit.SETTINGS, f"{path} cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(Exit.SETTINGS, f"{path} is not TOML: it is not UTF-8 at byte {error.start}")


def _refuse_writable(path: Path, number: int) -> None:
    """Refuse a file that others may write: they could give the server other keys and folders."""
    if "w" in rights_of_others(number):
        fail(Exit.SETTINGS, f"other users may write {path}: chmod go-w {path}")


def _refuse_unknown(label: str, key: str, names: Sequence[str]) -> NoReturn:
    near = difflib.get_close_matches(key.replace("_", "-").lower(), names, 1)
    advice = f": do you mean {near[0]}?" if near else "; strongroom serve --help lists them"
    fail(Exit.SETTINGS, f"{label} is no name of a flag{advice}")


def _given(flag: Flag, value: object, label: str, folder: Path) -> Given:
    if flag.repeats and not isinstance(value, list):
        fail(Exit.SETTINGS, f'{label} must be an array, such as ["..."]')
    values = value if isinstance(value, list) else [value]
    kind = flag.kind.in_toml
    if any(type(one) is not kind for one in values) or (isinstance(value, list) > flag.repeats):
        fail(Exit.SETTINGS, f"{label} must be {_NAMES[kind].format(flag.kind.placeholder)}")
    given = read_texts(flag, [text_of(one) for one in values], ValueSource.FILE, label)
    below = flag.kind.below
    if below is None:
        return given
    return Given(below(given.value, folder), given.source, given.label)
