"""`console/src/api/documents.ts`: the read API's documents as TypeScript, for the page.

Lives here: the generation from the structs. Must not live here: documents
(servers/console/api/documents.py).

    python -m tests.tidy.console_types     writes the file anew
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from typing import Any, Final, Literal, Union

import msgspec

from strongroom.servers.console import marks
from strongroom.servers.console.api import access, coordination, documents, opens
from tests.tidy.sources import ROOT

FILE: Final = ROOT / "console" / "src" / "api" / "documents.ts"
DOCUMENTS: Final[tuple[type[msgspec.Struct], ...]] = (
    *documents.DOCUMENTS,
    *coordination.DOCUMENTS,
    *access.DOCUMENTS,
    *opens.DOCUMENTS,
)
_HEAD: Final = """\
// The read API's documents. Made by `python -m tests.tidy.console_types` from
// src/strongroom/servers/console/api/; do not edit. The comment says whose a field is. Others get
// null in its place, or an empty list.

"""
_PLAIN: Final[dict[object, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def text() -> str:
    """Return the whole file."""
    return _HEAD + "\n".join(_interface(kind) for kind in _all(DOCUMENTS))


def _all(kinds: Iterable[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    found = {one.__name__: one for kind in kinds for one in marks.inner(kind)}
    return [found[name] for name in sorted(found)]


def _interface(kind: type[msgspec.Struct]) -> str:
    hints, whose = typing.get_type_hints(kind), marks.marks(kind)
    lines = [
        f"  readonly {name}: {_type(hint)}; // {whose[name].value}" for name, hint in hints.items()
    ]
    return "\n".join([f"export interface {kind.__name__} {{", *lines, "}\n"])


def _type(hint: Any) -> str:
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_type, inside))
    if origin is Literal:
        return " | ".join(f'"{one}"' for one in inside)
    if origin is tuple:
        element = _type(inside[0])
        return f"readonly ({element})[]" if " " in element else f"readonly {element}[]"
    return str(hint.__name__)


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(text(), encoding="utf-8")
