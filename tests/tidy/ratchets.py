"""Ratchets: counts of remaining breaches of rules, which may only fall.

Lives here: the measurement, and the comparison with the list of exceptions, ratchets.toml. Must not
live here: rules that hold everywhere (rules_*.py).

    python -m tests.tidy.ratchets     lowers the figures of the list to what is measured now

It never raises a figure. A figure above the list fails `make check`, and so does one below. The
list must then be lowered, so that later changes cannot undo the improvement.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath

from tests.tidy import sentences
from tests.tidy.sources import ROOT, Source, nodes, package_sources, text_files

LIST = ROOT / "tests" / "tidy" / "ratchets.toml"
STATE_MAX = 30
POSITIONAL_MAX = 6
MODULES_MAX = 20

Found = Mapping[str, Sequence[str]]
"""The measurements: for each name, the findings that are counted."""
Allowed = Mapping[str, Mapping[str, int]]
"""For each ratchet: the allowed number of findings by name."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PAGES_LEFT_OUT = {"CHANGELOG.md"}


def long_sentences(sources: Sequence[Source], pages: Mapping[PurePosixPath, str]) -> Found:
    """Sentences of more than 25 words, by folder of the package, and by page."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        here = sentences.long_sentences(str(source.path), sentences.of_python(source))
        found[str(source.path.parent)] += here
    for path, text in pages.items():
        found[str(path)] += sentences.long_sentences(str(path), sentences.of_page(text))
    return _without_empty(found)


def doubled_names(sources: Sequence[Source]) -> Found:
    """Names of public classes that several modules define; each should have one meaning."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(source.path))
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def large_classes(sources: Sequence[Source]) -> Found:
    """Classes with more than 30 methods and attributes together."""
    found = {
        f"{source.path} {node.name}": sorted(_members(node))
        for source in sources
        for node in nodes(source)
        if isinstance(node, ast.ClassDef)
    }
    return {name: members for name, members in found.items() if len(members) > STATE_MAX}


def many_parameters(sources: Sequence[Source]) -> Found:
    """Functions that take more than 6 arguments by position, `self` not counted."""
    found = {
        f"{source.path} {name}": _positional(node)
        for source in sources
        for name, node in _functions(source.tree)
    }
    return {name: taken for name, taken in found.items() if len(taken) > POSITIONAL_MAX}


def many_arguments(sources: Sequence[Source]) -> Found:
    """Calls that hand over more than 6 arguments by position, by file."""
    found = {
        str(source.path): [
            f"{source.path}:{node.lineno} {ast.unparse(node.func)}"
            for node in nodes(source)
            if isinstance(node, ast.Call) and len(node.args) > POSITIONAL_MAX
        ]
        for source in sources
    }
    return _without_empty(found)


def hidden_state(sources: Sequence[Source]) -> Found:
    """Private functions that look up state of the process, by file. Each should get it as an
    argument, so that its signature tells what it may touch."""
    found = {
        str(source.path): sorted(
            {
                f"{source.path}:{call.lineno} {ast.unparse(call)}"
                for name, node in _functions(source.tree)
                if _is_private(name)
                for call in ast.walk(node)
                if isinstance(call, ast.Call) and _looks_up_state(call.func)
            }
        )
        for source in sources
    }
    return _without_empty(found)


def _is_private(name: str) -> bool:
    """Return whether a function or a class around it is private. A constructor is not."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def _looks_up_state(function: ast.expr) -> bool:
    return ast.unparse(function).endswith((".held.of", ".disposable.of"))


def large_folders(sources: Sequence[Source]) -> Found:
    """Folders of more than 20 modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        if source.path.name != "__init__.py":
            found[str(source.path.parent)].append(source.path.name)
    return {folder: names for folder, names in found.items() if len(names) > MODULES_MAX}


def measured() -> dict[str, Found]:
    """Return all present figures of the project, by the ratchet's name."""
    sources = package_sources()
    pages = {
        path: text
        for path, text in text_files().items()
        if path.suffix == ".md" and path.name not in _PAGES_LEFT_OUT
    }
    by_sources: tuple[Callable[[Sequence[Source]], Found], ...] = (
        doubled_names,
        large_classes,
        many_parameters,
        many_arguments,
        hidden_state,
        large_folders,
    )
    return {
        long_sentences.__name__: long_sentences(sources, pages),
        **{measure.__name__: measure(sources) for measure in by_sources},
    }


def allowed() -> Allowed:
    """Return the list of exceptions."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def complaints(found: Found, most: Mapping[str, int]) -> list[str]:
    """Return the figures above the list, with their places, and those below the list."""
    texts = []
    for name in sorted({*found, *most}):
        here, figure = found.get(name, ()), most.get(name, 0)
        if len(here) > figure:
            texts.append(f"{name} has {len(here)}, and {figure} are allowed:")
            texts += [f"    {one}" for one in here]
        elif len(here) < figure:
            texts.append(
                f"{name} has {len(here)}, and {figure} are allowed: lower the list by "
                "`python -m tests.tidy.ratchets`"
            )
    return texts


def lowered(found: Mapping[str, Found], most: Allowed) -> dict[str, dict[str, int]]:
    """The list with each figure that has fallen; none is raised, and none is added."""
    return {
        ratchet: {
            name: min(figure, len(found[ratchet][name]))
            for name, figure in figures.items()
            if name in found[ratchet]
        }
        if ratchet in found
        else dict(figures)
        for ratchet, figures in most.items()
    }


def written(figures: Allowed) -> str:
    """Return the list as text."""
    head = "# Figures that may only fall; see ratchets.py.\n"
    parts = [
        f"\n[{ratchet}]\n" + "".join(f'"{name}" = {rows[name]}\n' for name in sorted(rows))
        for ratchet, rows in figures.items()
    ]
    return head + "".join(parts)


def _without_empty(found: Mapping[str, list[str]]) -> Found:
    return {name: places for name, places in found.items() if places}


def _functions(parent: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """Yield every function, with its name after those of its enclosing scopes."""
    for node in ast.iter_child_nodes(parent):
        inner = prefix
        if isinstance(node, _Function | ast.ClassDef):
            inner = f"{prefix}{node.name}."
        if isinstance(node, _Function):
            yield f"{prefix}{node.name}", node
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from _functions(node, inner)


def _positional(node: _Function) -> list[str]:
    names = [argument.arg for argument in chain(node.args.posonlyargs, node.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _members(node: ast.ClassDef) -> set[str]:
    """Return the names of methods, fields, and attributes set on `self`."""
    names: set[str] = set()
    for statement in node.body:
        if isinstance(statement, _Function):
            names.add(statement.name)
            names |= _set_on_self(statement)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
        elif isinstance(statement, ast.Assign):
            names |= {one.id for one in statement.targets if isinstance(one, ast.Name)}
    return names - {"__slots__"}


def _set_on_self(method: _Function) -> set[str]:
    return {
        node.attr
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def main() -> None:
    """Lower the list to what is measured."""
    LIST.write_text(written(lowered(measured(), allowed())), encoding="utf-8")


if __name__ == "__main__":
    main()
