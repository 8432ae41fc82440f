"""The rule about named reads: no decision, and nothing that it calls, takes a record by its
position.

A decision names its reads (services/core/decisions.py). Then a new read cannot shift the others,
and types say what each record is. `Found` takes no number, which mypy checks. Here are the
sequences of records behind it: arguments, fields, and variables that are made from them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tests.tidy.sources import PACKAGE, Source

# Only these have decisions, or code that decisions call with records.
_FOLDERS = ("importing", "services", "store")
# `Found` itself knows the positions.
_OWNER = PACKAGE / "services/core/decisions.py"
_OF_RECORDS = re.compile(
    r"\b(Collection|Iterable|Sequence|list|tuple)\[Record( \| None)?(, \.\.\.)?\]"
)
_COPIES = {"list", "reversed", "tuple"}


def record_fields(sources: Iterable[Source]) -> set[str]:
    """Return the names of all fields that hold sequences of records."""
    return {
        field.target.id
        for source in sources
        if _is_covered(source)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if _is_of_records(field.annotation)
    }


def records_by_position(source: Source, fields: set[str]) -> list[str]:
    """Return a complaint for each record that is taken by its position.

    Arguments:
        fields: what `record_fields` has found.
    """
    if not _is_covered(source):
        return []
    reads_matter = source.path.is_relative_to(PACKAGE / "services")
    return [
        f"{source.path}:{node.lineno} {ast.unparse(node)} takes a record by its position: "
        "give the read a name, as services/core/decisions.py says"
        for function in _outermost_functions(source.tree)
        for node in _Positions(function, fields, reads_matter).found()
    ]


def _is_covered(source: Source) -> bool:
    if not source.in_package or source.path == _OWNER:
        return False
    return source.path.relative_to(PACKAGE).parts[0] in _FOLDERS


def _is_of_records(annotation: ast.expr | None) -> bool:
    return annotation is not None and bool(_OF_RECORDS.search(ast.unparse(annotation)))


def _outermost_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            yield from _outermost_functions(node)


class _Positions:
    """The subscripts of sequences of records in one function and in those inside of it.

    Arguments:
        reads_matter: whether what is read from the store, and the reads of a decision, count too.
    """

    def __init__(self, function: ast.AST, fields: set[str], reads_matter: bool) -> None:
        self._nodes = tuple(ast.walk(function))
        self._fields = set(fields)
        self._reads_matter = reads_matter
        self._names = {
            node.arg
            for node in self._nodes
            if isinstance(node, ast.arg) and _is_of_records(node.annotation)
        }
        known = -1
        while known != len(self._names) + len(self._fields):
            known = len(self._names) + len(self._fields)
            for node in self._nodes:
                self._follow(node)

    def found(self) -> Iterator[ast.Subscript]:
        """Yield these subscripts."""
        for node in self._nodes:
            if isinstance(node, ast.Subscript) and self._is_position(node.value):
                yield node

    def _is_position(self, value: ast.expr) -> bool:
        # A decision's `reads` are in the order of its records.
        is_reads = isinstance(value, ast.Attribute) and ast.unparse(value) == "self.reads"
        return self._holds_records(value) or (self._reads_matter and is_reads)

    def _follow(self, node: ast.AST) -> None:
        """Note the variables and attributes to which records are assigned."""
        if isinstance(node, ast.Assign) and self._holds_records(node.value):
            for target in node.targets:
                self._note(target)
        elif (isinstance(node, ast.NamedExpr) and self._holds_records(node.value)) or (
            isinstance(node, ast.AnnAssign) and _is_of_records(node.annotation)
        ):
            self._note(node.target)

    def _note(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._names.add(target.id)
        elif isinstance(target, ast.Attribute):
            self._fields.add(target.attr)
        elif isinstance(target, ast.Tuple | ast.List):
            # `first, *others = records`: the others are records again.
            for one in target.elts:
                if isinstance(one, ast.Starred):
                    self._note(one.value)

    def _holds_records(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Name):
            return value.id in self._names
        if isinstance(value, ast.Attribute):
            return value.attr in self._fields
        if isinstance(value, ast.NamedExpr):
            return self._holds_records(value.value)
        if isinstance(value, ast.Subscript):
            return isinstance(value.slice, ast.Slice) and self._holds_records(value.value)
        if isinstance(value, ast.Await):
            return self._reads_matter and _is_call_of(value.value, "store", "read")
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return value.func.id in _COPIES and any(map(self._holds_records, value.args))
        return _is_call_of(value, "found", "records")


def _is_call_of(value: ast.expr, owner: str, method: str) -> bool:
    """Return whether this is a call like `x.owner.method()`."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return False
    receiver = value.func.value
    name = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
    return value.func.attr == method and name.strip("_") == owner
