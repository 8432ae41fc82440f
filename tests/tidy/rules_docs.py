"""Rules about docstrings: what they document exists.

Each rule takes a source and returns a complaint for each breach.
"""

from __future__ import annotations

import ast
import inspect
import re

from tests.tidy.sources import Source, nodes

# A section of a docstring with one name a line, and the names at the beginning of such a line.
_SECTIONS = re.compile(
    r"^(?P<title>Arguments|Attributes):\n(?P<body>(?:^(?:    .*)?$\n?)+)", flags=re.MULTILINE
)
_NAMED = re.compile(r"^    (?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: |$)", flags=re.MULTILINE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def documented_in_vain(source: Source) -> list[str]:
    """Return a complaint for each documented argument or attribute that does not exist.

    A class may document the arguments of its construction and its attributes under either title. A
    class that inherits is left out for attributes, since a base may declare them.
    """
    found = []
    for node in nodes(source):
        if isinstance(node, ast.ClassDef):
            known = _members(node)
            is_open = bool(node.bases) and not _is_plain(node)
        elif isinstance(node, _Function):
            known, is_open = _parameters(node), False
        else:
            continue
        for name in _documented(ast.get_docstring(node, clean=False)):
            if name not in known and not is_open:
                found.append(f"{source.path}:{node.lineno} {node.name} documents {name!r}")
    return found


def _documented(docstring: str | None) -> list[str]:
    text = inspect.cleandoc(docstring or "")
    return [
        name.lstrip("*")
        for section in _SECTIONS.finditer(text)
        for line in _NAMED.finditer(section["body"])
        for name in line["names"].split(", ")
    ]


def _parameters(node: _Function) -> set[str]:
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    every += [one for one in (given.vararg, given.kwarg) if one is not None]
    return {one.arg for one in every}


# Bases that bring no attributes of their own.
_PLAIN = {"Struct", "Generic", "Protocol", "NamedTuple", "ABC", "Exception", "ValueError"}


def _is_plain(node: ast.ClassDef) -> bool:
    return all(_last_name(base) in _PLAIN for base in node.bases)


def _last_name(base: ast.expr) -> str:
    if isinstance(base, ast.Subscript):
        return _last_name(base.value)
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def _members(node: ast.ClassDef) -> set[str]:
    found = set[str]()
    for one in ast.walk(node):
        if isinstance(one, _Function):
            found |= {one.name, *_parameters(one)}
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found.add(one.target.id)
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            found.add(one.attr)
    return found
