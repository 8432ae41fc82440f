"""A trace as text.

Lives here: how steps, calls of the engine, statements and answers are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import Any, Final

from strongroom.engines.base import Partition, Ref, Step, Write
from tests.conformance.answer import Answer
from tests.trace.recording import Called, Committed, Event, Stated
from tests.trace.steps import Step as PathStep
from tests.trace.steps import missing

BODY_SHOWN_BYTES: Final = 300
_VALUE_SHOWN_BYTES: Final = 60
_OWN: Final = "src/strongroom/"


def steps(found: Sequence[PathStep], with_functions: bool) -> Iterator[str]:
    """The steps with the files and functions that each passed through."""
    for step in found:
        calls = [event for event in step.events if isinstance(event, Called)]
        yield step.name if step.was_begun else f"before {step.name}"
        yield from _calls(calls) if with_functions else _files(calls)
    files = {event.path for step in found for event in step.events if isinstance(event, Called)}
    left_out = missing(found)
    yield f"{len(files)} files" + (f"; left out: {', '.join(left_out)}" if left_out else "")


def _files(calls: Sequence[Called]) -> Iterator[str]:
    """A line for each file of a step, in the order of the first calls."""
    functions: dict[str, dict[str, None]] = {}
    for call in calls:
        functions.setdefault(call.path, {})[call.code.co_qualname] = None
    for path, names in functions.items():
        yield f"  {path.removeprefix(_OWN)}: {', '.join(map(_plain, names))}"


def _calls(calls: Sequence[Called]) -> Iterator[str]:
    """A line for each call, below the functions around it; a line names another thread."""
    for thread, group in groupby(calls, lambda call: call.thread):
        if thread != calls[0].thread:
            yield f"  thread {thread}:"
        for call in group:
            indent = "  " * (call.depth + 1)
            yield f"{indent}{_plain(call.code.co_qualname)}  {call.path}:{call.code.co_firstlineno}"


def _plain(name: str) -> str:
    return name.replace(".<locals>", "")


def engine_calls(found: Iterable[PathStep]) -> Iterator[str]:
    """The calls of the engine, with partitions and keys, and what decisions had it write."""
    for step in found:
        for event in step.events:
            if isinstance(event, Called) and event.engine:
                yield f"{step.name}: {event.engine}"
                yield from (f"  {line}" for line in _arguments(event.arguments))
            elif isinstance(event, Committed):
                yield f"{step.name}: a decision commits"
                yield from (f"  {line}" for one in event.commit.steps for line in _step(one))


def _arguments(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name, value in arguments.items():
        if name == "reads":
            yield from (f"read {shown_ref(ref)}" for ref in value)
        elif name == "names":
            yield from (f"name {shown(one)}" for one in value)
        elif isinstance(value, Ref):
            yield f"{name} {shown_ref(value)}"
        elif isinstance(value, Partition):
            yield f"{name} {shown_partition(value)}"
        elif isinstance(value, bytes):
            yield f"{name} {shown(value)}"
        elif isinstance(value, Enum):
            yield f"{name} {value.name.lower()}"
        elif isinstance(value, int):
            yield f"{name} {value}"


def _step(step: Step) -> Iterator[str]:
    yield f"in {shown_partition(step.partition)}"
    yield from (f"  {_write(write)}" for write in step.writes)
    for verb, contents in (("adopt", step.adopt), ("drop", step.drop)):
        yield from (f"  {verb} content {one}" for one in contents)


def _write(write: Write) -> str:
    key = _key(write.key.hidden, write.key.name)
    return f"delete {key}" if write.value is None else f"put {key}, {len(write.value)} bytes"


def statements(events: Iterable[Event]) -> Iterator[str]:
    """The statements of SQL with their values, and the thread that ran them."""
    for event in events:
        if isinstance(event, Stated):
            yield f"{event.sql}  [{event.thread}]"
            if event.values:
                yield f"  {', '.join(map(_value, event.values))}"


def _value(value: Any) -> str:
    return shown(bytes(value)) if isinstance(value, bytes | memoryview) else repr(value)


def answer(found: Answer) -> Iterator[str]:
    """The status, the headers, and the first bytes of the body."""
    yield f"{found.status} {found.reason}"
    yield from (f"{name}: {value}" for name, value in found.headers)
    if found.body:
        yield ""
        yield found.body[:BODY_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    if len(found.body) > BODY_SHOWN_BYTES:
        yield f"({len(found.body)} bytes in all)"


def shown_ref(ref: Ref) -> str:
    """The address of a record: keyspace, partition and key; `store/core/keys.py` explains them."""
    return f"{shown_partition(ref.partition)} {_key(ref.key.hidden, ref.key.name)}"


def shown_partition(partition: Partition) -> str:
    """The keyspace and the name of a partition."""
    return f"{shown(partition.keyspace)} / {shown(partition.name)}"


def _key(hidden: bool, name: bytes) -> str:
    return f"{'hidden' if hidden else 'face'} {shown(name)}"


def shown(value: bytes) -> str:
    """Bytes as text: what cannot be printed as `\\x` with two digits, and no more than a line."""
    text = "".join(chr(one) if 32 < one < 127 else f"\\x{one:02x}" for one in value)
    if len(value) > _VALUE_SHOWN_BYTES:
        return f"{text[:_VALUE_SHOWN_BYTES]}... ({len(value)} bytes)"
    return text or '""'
