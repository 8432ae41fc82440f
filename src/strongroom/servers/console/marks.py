"""Whose each field of the read API's documents is, and what a viewer gets of a document.

Lives here: the marks, and the one function that removes what a viewer may not see. Must not live
here: documents (api/documents.py), who a viewer is (viewers.py).

A field without a mark is an error when the module of its document is imported, so a new field
cannot be shown by mistake. A field that not everybody may see has a default. The default takes its
place for those who may not.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, TypeVar

import msgspec


class Mark(enum.Enum):
    """Whose a field is."""

    ANYBODY = "anybody"
    """Those without a credential, too."""
    READABLE = "readable"
    """Whoever may read the data that it is about; the list itself has nothing else."""
    OWN = "own"
    """The account's own key; for operators, the same of the whole server."""
    SERVER = "server"
    """Operators only: it concerns the whole server, or another account."""


ANYBODY: Final = Mark.ANYBODY
READABLE: Final = Mark.READABLE
OWN: Final = Mark.OWN
SERVER: Final = Mark.SERVER

Document = TypeVar("Document", bound=msgspec.Struct)


@cache
def marks(document: type[msgspec.Struct]) -> dict[str, Mark]:
    """Return the mark of each field. Raises TypeError if a field has none, or several."""
    by_name = {}
    for name, hint in typing.get_type_hints(document, include_extras=True).items():
        given = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Mark)]
        if len(given) != 1:
            raise TypeError(f"{document.__name__}.{name} must say once whose it is")
        by_name[name] = given[0]
    return by_name


def shown(document: Document, visible: frozenset[Mark]) -> Document:
    """Return a document with the default in each field that is not of the marks `visible`."""
    kind = type(document)
    defaults = _defaults(kind)
    values: dict[str, Any] = {}
    for name, mark in marks(kind).items():
        value = getattr(document, name)
        values[name] = _shown_value(value, visible) if mark in visible else defaults[name]
    return kind(**values)


def inner(document: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Yield the documents that a document contains, itself first, each once."""
    seen: dict[type[msgspec.Struct], None] = {}
    waiting = [document]
    while waiting:
        kind = waiting.pop()
        if kind not in seen:
            seen[kind] = None
            for hint in typing.get_type_hints(kind).values():
                waiting += _structs(hint)
    yield from seen


def _shown_value(value: Any, visible: frozenset[Mark]) -> Any:
    if isinstance(value, msgspec.Struct):
        return shown(value, visible)
    if isinstance(value, tuple):
        return tuple(_shown_value(one, visible) for one in value)
    return value


@cache
def _defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    fields = msgspec.structs.fields(kind)
    return {one.name: one.default for one in fields if one.default is not msgspec.NODEFAULT}


def _structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for inside in typing.get_args(hint):
        yield from _structs(inside)
