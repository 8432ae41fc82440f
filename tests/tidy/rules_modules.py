"""Rules about the package as a whole: every module is imported, every folder is a package."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import Any

from tests.tidy.sources import Source, nodes

# Shipped for users: such a module is alive if any file of the repository, such as a test, imports
# it.
PUBLIC_PACKAGES = ("strongroom.coordination", "strongroom.testing")
# package -> the reason why it exists before the package imports it. Any import keeps its modules
# alive too, so that each of them has tests. The list may only shrink: a row is removed when a
# service uses the package.
NOT_YET_SERVED: dict[str, str] = {}

_FILE = re.compile(r"(?<![\w/.*-])(?:[\w-]+/)*\w+\.py\b")


def entry_points(pyproject: str) -> set[str]:
    """Return the modules that start from outside: the package, `python -m`, scripts, plugins."""
    project: dict[str, Any] = tomllib.loads(pyproject)["project"]
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    named = {target.split(":")[0] for group in groups for target in group.values()}
    return {"strongroom", "strongroom.__main__"} | named


def dead_modules(everything: Iterable[Source], entries: set[str]) -> list[str]:
    """Return a complaint for each module of the package that is never imported."""
    sources = tuple(everything)
    used: set[str] = set(entries)
    used_outside: set[str] = set()
    for source in sources:
        found = imported_modules(source)
        if source.in_package:
            used |= found - {source.module}
        else:
            used_outside |= found
    living = (*PUBLIC_PACKAGES, *NOT_YET_SERVED)
    used |= {name for name in used_outside if name.startswith(living)}
    return [
        f"{source.path} is imported by nothing"
        for source in sources
        if source.in_package and not _is_alive(source, used)
    ]


def served_after_all(everything: Iterable[Source]) -> list[str]:
    """Return a complaint for each row of NOT_YET_SERVED that the package imports by now."""
    return [
        f"{source.path} imports {name}: take {package} out of NOT_YET_SERVED"
        for source in everything
        for package in NOT_YET_SERVED
        if source.in_package and not source.module.startswith(tuple(NOT_YET_SERVED))
        for name in sorted(imported_modules(source))
        if name == package or name.startswith(f"{package}.")
    ]


def folders_without_init(everything: Iterable[Source]) -> list[str]:
    """Return a complaint for each folder of the package that import checks would overlook."""
    paths = {source.path for source in everything if source.in_package}
    folders = {path.parent for path in paths}
    return [
        f"{folder} has no __init__.py" for folder in folders if folder / "__init__.py" not in paths
    ]


def ends_of(paths: Iterable[PurePosixPath]) -> frozenset[str]:
    """Return each path, and each of its suffixes that can name its file."""
    return frozenset(
        "/".join(path.parts[first:]) for path in paths for first in range(len(path.parts))
    )


def named_in_vain(source: Source, ends: Collection[str]) -> list[str]:
    """Return a complaint for each file that a module's docstring names and that does not exist.

    Arguments:
        ends: the suffixes of the project's files; see ends_of.
    """
    named = _FILE.findall(ast.get_docstring(source.tree) or "")
    return [f"{source.path} names {name}, which is not there" for name in named if name not in ends]


def imported_modules(source: Source) -> set[str]:
    """Return every dotted name that a file's imports may refer to, modules and members alike."""
    found: set[str] = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _base(source, node)
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def _base(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    depth = node.level - (1 if source.path.name == "__init__.py" else 0)
    package = source.module.split(".")
    return ".".join([*package[: len(package) - depth], *([node.module] if node.module else [])])


def _is_alive(source: Source, used: set[str]) -> bool:
    if source.module in used:
        return True
    # A package is alive through its modules, each of which is checked separately.
    is_package = source.path.name == "__init__.py"
    return is_package and any(name.startswith(f"{source.module}.") for name in used)
