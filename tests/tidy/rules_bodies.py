"""The rule about bodies of blobs: only their package distinguishes their kinds.

The kinds are the subclasses of `Body` in store/blob/bodies/. They are found in its sources, so a
new kind is covered at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.tidy.sources import PACKAGE, Source

BODIES = PACKAGE / "store/blob/bodies"
_MODULE = "strongroom.store.blob.bodies"


def kinds_of_bodies(sources: Iterable[Source]) -> set[str]:
    """Return the names of all kinds."""
    return {
        node.name
        for source in sources
        if source.path.is_relative_to(BODIES)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Body" for base in node.bases)
    }


def bodies_taken_apart(sources: Iterable[Source]) -> list[str]:
    """Return a complaint for each other module that names a kind of body, and so could test for
    it."""
    everything = list(sources)
    kinds = kinds_of_bodies(everything)
    return [
        f"{source.path}:{line} {name} is a kind of body: ask the body through its interface"
        for source in everything
        if source.in_package and not source.path.is_relative_to(BODIES)
        for line, name in _named(source)
        if name in kinds
    ]


def _named(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the names that a file imports from the package of bodies, or from one of its
    modules."""
    modules = set[str]()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_MODULE):
            for alias in node.names:
                modules.add(alias.asname or alias.name)
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module == _MODULE.rpartition(".")[0]:
            modules.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            modules.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and _root(node) in modules:
            yield node.lineno, node.attr


def _root(node: ast.Attribute) -> str:
    value = node.value
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""
