"""Which names shares, directories and files may have, and when two of them are the same.

The rules of one component and of a path, and the one case folding that REST and SMB share. There
are no 8.3 names. Sources: "Naming and referencing shares, directories, files, and metadata";
[MS-FSCC] section 2.1.5 (names) and 2.1.5.2 (forbidden characters); reference smb.md 3.2, file.md 8.

Names keep their case, and their Unicode normalization form. A name in NFC and the same name in NFD
are two names.
"""

from __future__ import annotations

import re
from typing import Final

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import names as core_names
from strongroom.semantics.file import upcase

COMPONENT_UNITS_MAX: Final = 255
PATH_UNITS_MAX: Final = 2048
PATH_COMPONENTS_MAX: Final = 250
FOLD_VERSION: Final = upcase.VERSION

_FORBIDDEN: Final = re.compile('["\\\\/:<>|*?\x00-\x1f\ud800-\udfff]')
_DOTS: Final = frozenset((".", ".."))
# Folded names of devices. REST cannot address a file of such a name, so SMB may not create one
# either (file.md 8). Windows refuses them too.
_NUMBERED: Final = tuple(f"{port}{digit}" for port in ("COM", "LPT") for digit in range(1, 10))
_DEVICES: Final = frozenset(("CON", "PRN", "AUX", "NUL", "CLOCK$", *_NUMBERED))
_IPC: Final = "ipc$"


def fold(name: str) -> str:
    """The key of a name: two names are the same if, and only if, their keys are equal.

    Each UTF-16 unit is replaced by its upper case in the frozen table. Units of surrogate pairs are
    their own upper case, so that characters beyond the BMP stay as they are.
    """
    return name.translate(upcase.UPPER)


def same(left: str, right: str) -> bool:
    return left == right or fold(left) == fold(right)


def utf16_units(text: str) -> int:
    """The length of a text in UTF-16 units, the unit of all limits of names."""
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


def check_component(name: str) -> None:
    """Check one name: 1 to 255 UTF-16 units, none forbidden, not a dot name, not a DOS device.

    Unpaired surrogates are refused too, since XML and JSON cannot represent them. Trailing dots and
    spaces are part of the name (see `without_trailing_dots`).
    """
    if name in _DOTS:
        raise StorageError(file_errors.DOT_NAME)
    if utf16_units(name) > COMPONENT_UNITS_MAX:
        raise StorageError(file_errors.INVALID_FILE_OR_DIRECTORY_PATH_NAME)
    if not name or _FORBIDDEN.search(name) is not None or fold(name) in _DEVICES:
        raise StorageError(file_errors.INVALID_FILE_NAME)


def check_path(components: tuple[str, ...]) -> None:
    """Check a path: at most 250 components with valid names, and 2,048 units with the separators.

    Arguments:
        components: from the share's root down; () is the root itself.
    """
    length = sum(map(utf16_units, components)) + max(0, len(components) - 1)
    if length > PATH_UNITS_MAX or len(components) > PATH_COMPONENTS_MAX:
        raise StorageError(file_errors.INVALID_FILE_OR_DIRECTORY_PATH_NAME)
    for name in components:
        check_component(name)


def without_trailing_dots(name: str) -> str:
    """The name that REST uses without `x-ms-allow-trailing-dot: true` (file.md 3).

    SMB does not need this, since Windows strips names before it sends them. A dot name stays as it
    is, so that `check_component` refuses it by its own rule.
    """
    return name if name in _DOTS else name.rstrip(".")


def check_share(name: str) -> None:
    """A share's name: 3 to 63 of `[a-z0-9-]`, letter or digit at both ends, no `--`."""
    core_names.check_queue(name)


def share_of_tree(name: str) -> str | None:
    """The share that a TREE_CONNECT names, in any case; None when no share can have the name.

    `IPC$` is the share of pipes, which always exists (smb.md 2.3). Names of shares are ASCII, so
    that their lower case depends on no table.
    """
    lower = name.lower() if name.isascii() else ""
    return lower if lower == _IPC or core_names.is_queue_name(lower) else None
