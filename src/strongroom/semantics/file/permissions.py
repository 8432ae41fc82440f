"""File permissions: security descriptors as SDDL, kept as text and never enforced.

The syntax and bounds of SDDL, and the form of permission keys. A client that mounts a share with
the account's key has full access, as in Azure. Sources: [MS-DTYP] section 2.5.1.1 (SDDL syntax);
"Create Permission" of the Azure Storage REST reference; file.md 2 and 3.
"""

from __future__ import annotations

import re
from typing import Final

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError

HEADER_BYTES_MAX: Final = 8 * 1024
"""The limit of x-ms-file-permission. Longer permissions need a key."""
PERMISSION_BYTES_MAX: Final = 64 * 1024
"""The limit of a permission's text. It equals that of an ACL, whose size is a field of 16 bits
([MS-DTYP] 2.4.5)."""
INHERIT: Final = "inherit"
PRESERVE: Final = "preserve"

_SUB_AUTHORITIES: Final = r"(?:-(?:[0-9]{1,10}|0x[0-9A-Fa-f]{1,8})){1,15}"
_SID: Final = rf"(?:[A-Z]{{2}}|S-1-(?:[0-9]{{1,15}}|0x[0-9A-Fa-f]{{12}}){_SUB_AUTHORITIES})"
_GUID: Final = r"(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})?"
_TYPES: Final = r"(?:A|D|AU|AL|OA|OD|OU|OL|ML|SP|XA|XD|ZA|XU|RA|TL|FL)"
_FLAGS: Final = r"(?:CI|OI|NP|IO|ID|SA|FA|TP|CR)*"
_RIGHTS: Final = (
    r"(?:0x[0-9A-Fa-f]{1,8}|[0-9]{1,10}|(?:G[ARWX]|RC|SD|WD|WO|RP|WP|CC|DC|LC|SW|LO|DT|CR|F[ARWX]"
    r"|K[ARWX]|N[RWX])*)"
)
_NESTED_MAX: Final = 8


def _balanced(depth: int) -> str:
    """A pattern for text whose parentheses nest at most `depth` deep. It never backtracks."""
    inner = rf"|\({_balanced(depth - 1)}\)" if depth else ""
    return rf"(?:[^()]++{inner})*+"


# Conditional and resource attribute entries have a further part behind the SID.
_CONDITION: Final = rf"(?:;{_balanced(_NESTED_MAX)})?"
_ACE: Final = re.compile(rf"\({_TYPES};{_FLAGS};{_RIGHTS};{_GUID};{_GUID};{_SID}{_CONDITION}\)")
_ACL_FLAGS: Final = re.compile(r"(?:P|AR|AI|NO_ACCESS_CONTROL)*")
_OWNER: Final = re.compile(rf"O:({_SID})(?=G:|D:|S:|\Z)")
_GROUP: Final = re.compile(rf"G:({_SID})(?=O:|D:|S:|\Z)")
_KEY: Final = re.compile(r"[0-9]{1,20}\*[0-9]{1,20}")


def check_sddl(text: str, bytes_max: int = PERMISSION_BYTES_MAX) -> str:
    """Check a permission, and return it: an owner, a group and a DACL, in this order, and
    optionally a SACL.

    Arguments:
        bytes_max: HEADER_BYTES_MAX for a header.
    """
    if len(text) > bytes_max or not text.isascii() or not _is_sddl(text):
        raise StorageError(file_errors.FILE_INVALID_PERMISSION)
    return text


def check_key(text: str) -> str:
    """Check the form of a permission key, and return it: two numbers with an asterisk between. The
    store decides whether the key exists."""
    if _KEY.fullmatch(text) is None:
        raise StorageError(file_errors.FILE_INVALID_PERMISSION_KEY)
    return text


def _is_sddl(text: str) -> bool:
    at = 0
    for part in (_OWNER, _GROUP):
        match = part.match(text, at)
        if match is None:
            return False
        at = match.end()
    end = _after_acl(text, at, "D:")
    if end is None:
        return False
    return end == len(text) or _after_acl(text, end, "S:") == len(text)


def _after_acl(text: str, at: int, label: str) -> int | None:
    """Where an ACL ends, or None when there is none; each entry is matched on its own."""
    if not text.startswith(label, at):
        return None
    flags = _ACL_FLAGS.match(text, at + len(label))
    assert flags is not None, "the pattern matches nothing too"
    at = flags.end()
    while (entry := _ACE.match(text, at)) is not None:
        at = entry.end()
    return at
