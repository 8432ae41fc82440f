"""Directories and files by their paths: REST's view of one, and REST's change of its attributes.

Lives here: the loop of every REST operation on one existing directory or file. Must not live here:
what the operations do (files.py, ranges.py), paths (names/paths.py), the decision
(node/deciding.py).

An operation resolves its path, enters the table of opens, and decides. The decision raises
PathChanged when a name, or a fact that admission relied on, has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from strongroom.semantics.file.accesses import FileOperation
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names import paths
from strongroom.services.file.node import access, deciding
from strongroom.services.file.node.access import ByPath, NodeState
from strongroom.services.file.node.deciding import Edit, Edited, NodeRule
from strongroom.services.file.node.origins import RequestOrigin
from strongroom.services.file.opens.admission import enter, facts_of
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core.extents import MapPlace
from strongroom.store.file.file_records import FileRecord

T = TypeVar("T")


class NodeView(msgspec.Struct, frozen=True):
    """A committed directory or file. `version`: its record's; in a snapshot, the snapshot's
    stamp."""

    where: Where
    record: FileRecord
    version: int

    @property
    def map(self) -> MapPlace:
        return MapPlace(self.where.partition, self.where.id)


class NodeWritten(msgspec.Struct, frozen=True):
    """The file or directory after a change."""

    where: Where
    record: FileRecord
    md5: bytes | None = None

    @property
    def etag(self) -> int:
        """A stamp, as `modified` is."""
        return self.record.etag

    @property
    def modified(self) -> int:
        return self.record.modified


def view_of(where: Where, state: NodeState) -> NodeView:
    return NodeView(where, state.record, state.version)


async def view(services: Services, call: Call[Any], *, is_directory: bool) -> NodeView:
    """Read the directory or file that a request names, and guard its lease."""
    origin = RequestOrigin(call)
    while True:
        where = await paths.find(services, call, is_directory=is_directory)
        try:
            return view_of(where, await access.look(services, ByPath(origin, where)))
        except PathChanged:
            continue


def _report_to_nobody(where: Where) -> None:
    pass


async def change_attributes(
    services: Services,
    call: Call[Any],
    operation: FileOperation | None,
    rule: NodeRule[T],
    *,
    further: Reads | None = None,
    clears_read_only: bool = False,
    report: Callable[[Where], None] = _report_to_nobody,
) -> tuple[Where, T]:
    """Change the attributes of the file or directory that a request names.

    Arguments:
        operation: the operation on a file; None = it is a directory, whose use no open denies.
        further: what `rule` reads.
        clears_read_only: see RestRequest.
        report: is called when the change is durable, also if the request was cut off meanwhile.

    Returns: its path, and the result of `rule`.
    """
    while True:
        seen = await view(services, call, is_directory=operation is None)
        facts = facts_of(seen.record)
        admitted = ByPath(RequestOrigin(call), seen.where, facts)
        try:
            with await enter(
                services,
                seen.where.partition,
                operation or FileOperation.LIST_FILES,
                facts,
                clears_read_only=clears_read_only,
            ):
                commit = deciding.commit(services, admitted, rule, further)
                result = await deciding.reported(commit, partial(report, seen.where))
                return seen.where, result
        except PathChanged:
            continue


async def edit_attributes(
    services: Services,
    call: Call[Any],
    operation: FileOperation | None,
    edit: Edit,
    *,
    further: Reads | None = None,
    clears_read_only: bool = False,
    report: Callable[[Where], None] = _report_to_nobody,
) -> NodeWritten:
    """As `change_attributes`, by an edit."""
    where, record = await change_attributes(
        services,
        call,
        operation,
        Edited(edit),
        further=further,
        clears_read_only=clears_read_only,
        report=report,
    )
    return NodeWritten(where, record)
