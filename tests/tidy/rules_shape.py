"""Rules about the form of files: their length, names, docstrings and types.

Each rule takes one `Source` and returns a complaint for each breach; no complaint means tidy.
"""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from tests.tidy.sources import Source, nodes

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
COLUMNS_MAX = 100

# path -> (lines allowed, why). The list may only shrink.
FILE_EXCEPTIONS: dict[PurePosixPath, tuple[int, str]] = {}
# (path, function) -> (lines allowed, why). The list may only shrink.
FUNCTION_EXCEPTIONS: dict[tuple[PurePosixPath, str], tuple[int, str]] = {}

BANNED_MODULE_NAMES = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}

_DECLARATIONS = PurePosixPath("src/strongroom/operations")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: Source) -> list[_Function]:
    """Return every function and method of a file, nested ones too."""
    return [node for node in nodes(source) if isinstance(node, _Function)]


def long_functions(source: Source) -> list[str]:
    """Return a complaint for each function of more than 70 lines, since it hides a second one."""
    complaints = []
    for node in functions(source):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        allowed, _ = FUNCTION_EXCEPTIONS.get((source.path, node.name), (FUNCTION_LINES_MAX, ""))
        if lines > allowed:
            complaints.append(f"{source.path}:{node.lineno} {node.name} has {lines} lines")
    return complaints


def long_file(source: Source) -> list[str]:
    """Return a complaint for a file of more than 500 lines, unless it only declares operations."""
    if source.path.parent == _DECLARATIONS and not functions(source):
        return []
    allowed, _ = FILE_EXCEPTIONS.get(source.path, (FILE_LINES_MAX, ""))
    lines = len(source.text.splitlines())
    return [f"{source.path} has {lines} lines"] if lines > allowed else []


def long_lines(source: Source) -> list[str]:
    """Return a complaint for each line of more than 100 columns."""
    numbered = enumerate(source.text.splitlines(), start=1)
    return [
        f"{source.path}:{number} has {len(line)} columns"
        for number, line in numbered
        if len(line) > COLUMNS_MAX
    ]


def missing_module_docstring(source: Source) -> list[str]:
    """Return a complaint for a module without a docstring."""
    return [] if ast.get_docstring(source.tree) else [f"{source.path} has no module docstring"]


def banned_module_name(source: Source) -> list[str]:
    """Return a complaint for a module name that means nothing, since such a module collects
    anything."""
    names = {part.removesuffix(".py") for part in source.path.parts}
    return [f"{source.path}: {name!r} names nothing" for name in names & BANNED_MODULE_NAMES]


def untyped_functions(source: Source) -> list[str]:
    """Return a complaint for each function without types of its arguments and its result."""
    complaints = []
    for node in functions(source):
        where = f"{source.path}:{node.lineno} {node.name}"
        if node.returns is None:
            complaints.append(f"{where} does not say what it returns")
        complaints += [f"{where} does not type {name}" for name in _untyped_arguments(node)]
    return complaints


def _untyped_arguments(node: _Function) -> list[str]:
    positional = [*node.args.posonlyargs, *node.args.args]
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    rest = [argument for argument in (node.args.vararg, node.args.kwarg) if argument]
    everything = [*positional, *node.args.kwonlyargs, *rest]
    return [argument.arg for argument in everything if argument.annotation is None]
