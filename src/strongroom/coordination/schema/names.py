"""The mapping between names and keys: one documented, reversible rule for every store.

A key is `kind/escaped`. The kind keeps a lock and an election of one name apart. In the name, the
characters `A-Z a-z 0-9 _ -` stand for themselves, and so does `.` except as the first character.
Every other byte of its UTF-8 form is written `%XX` (upper-case hex). So a key is plain ASCII and
has exactly one `/`. It is safe as a blob name and as a file name. Two names never share a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Formatter
from typing import Final

from strongroom.coordination.errors import BadName

ESCAPED_MAX: Final = 240  # a file name has at most 255 bytes, and stores add a suffix
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_ESCAPE: Final = re.compile(r"%([0-9A-F]{2})")
_SIMPLE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}")


def key_of(kind: str, name: str) -> str:
    """Return the key of a name.

    Arguments:
        kind: the kind of record under the key: "lock", "election", ...
        name: any text but the empty one.

    Raises:
        BadName: the name is empty, not encodable, or longer than `ESCAPED_MAX` once escaped.
    """
    return f"{kind}/{escape(name)}"


def name_of(key: str) -> str:
    """Return the name from which `key_of` made this key."""
    return unescape(key.partition("/")[2])


def escape(name: str) -> str:
    """Return the name, escaped to the characters that every store accepts.

    Raises: as `key_of`.
    """
    if _SIMPLE.fullmatch(name):
        return name
    if not name:
        raise BadName("a name must not be empty")
    try:
        raw = name.encode()
    except UnicodeEncodeError as error:
        raise BadName(f"the name {name!r} is not valid Unicode") from error
    escaped = "".join(
        chr(byte) if byte in _PLAIN and not (byte == 0x2E and at == 0) else f"%{byte:02X}"
        for at, byte in enumerate(raw)
    )
    if len(escaped) > ESCAPED_MAX:
        raise BadName(
            f"the name {name[:40]!r}... has {len(escaped)} characters once escaped;"
            f" at most {ESCAPED_MAX} are allowed"
        )
    return escaped


def unescape(escaped: str) -> str:
    """Return the name whose escaped form this is. Raises: BadName if there is none."""
    raw = _ESCAPE.sub(lambda found: chr(int(found.group(1), 16)), escaped)
    try:
        name = raw.encode("latin-1").decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raise BadName(f"{escaped!r} is no escaped name") from error
    if escape(name) != escaped:
        raise BadName(f"{escaped!r} is no escaped name")
    return name


def check_template(template: str, function: str, arguments: Sequence[str]) -> None:
    """Refuse a name whose braces refer to something else than a function's arguments.

    Arguments:
        template: such as "report:{customer}".
        function: the function's name, for the message.
        arguments: the names of its arguments.

    Raises:
        BadName: the message names the arguments that there are.
    """
    try:
        fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    except ValueError as error:
        raise BadName(f"the name {template!r} cannot be read: {error}") from error
    for field in fields:
        argument = re.split(r"[.\[]", field, maxsplit=1)[0]
        if argument not in arguments:
            known = ", ".join(arguments) or "none"
            raise BadName(
                f"the name {template!r} refers to {argument!r}, which is no argument of"
                f" {function}(); its arguments: {known}"
            )
