"""What runs while one request is served: functions, calls of the engine, statements of SQL.

Lives here: the observation, and the order of the events. Must not live here: which function begins
a step (steps.py), how events are shown (report.py).

The interpreter reports each call in threads that are started after `threading.setprofile`. So a
recorder is installed before the server starts.
"""

from __future__ import annotations

import inspect
import pdb
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import CodeType, FrameType
from typing import Any

import apsw

from strongroom.engines.base import Commit
from tests.tidy.sources import PACKAGE, ROOT

_ENGINES = str(ROOT / PACKAGE / "engines")
# The client's half of the process.
_NOT_SERVED = str(ROOT / PACKAGE / "testing")
_RESUMED = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the package was called.

    Attributes:
        depth: how many functions of the package are around it, in this thread.
        arguments: only of a call of the engine: its name, and its arguments by their names.
    """

    code: CodeType
    thread: str
    depth: int
    engine: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file, from the root of the repository."""
        return str(PurePosixPath(Path(self.code.co_filename).relative_to(ROOT).as_posix()))


@dataclass(frozen=True, slots=True)
class Committed:
    """A decision told the engine what to write."""

    commit: Commit[Any]


@dataclass(frozen=True, slots=True)
class Stated:
    """SQLite was given a statement, with values for its `?`."""

    sql: str
    values: tuple[Any, ...]
    thread: str


Event = Called | Committed | Stated


class Recorder:
    """Records events while `is_on`.

    Arguments:
        engine: the functions of an engine that are shown with their arguments, and their names.
        stop_at: the debugger stops at the first call of this function; empty for none.
    """

    def __init__(self, engine: Mapping[CodeType, str] | None = None, stop_at: str = "") -> None:
        self.events: list[Event] = []
        self.is_on = False
        self.stop_at = stop_at
        self._engine = engine or {}
        self._begun: set[FrameType] = set()
        self._package = str(ROOT / PACKAGE)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Observe threads, and connections to SQLite, that begin in this block."""
        threading.setprofile(self.note)
        apsw.connection_hooks.append(self._observe)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(self._observe)
            threading.setprofile(None)

    def begin(self) -> None:
        """Forget what was recorded, and record from now on."""
        self.events, self._begun = [], set()
        self.is_on = True

    def note(self, frame: FrameType, event: str, value: object) -> None:
        """Record a call or a decision's commit; the interpreter calls this."""
        if not self.is_on:
            return
        if event == "call":
            self._called(frame)
        elif event == "return" and type(value) is Commit and self._is_for_engine(frame):
            self.events.append(Committed(value))

    def files(self) -> set[str]:
        """The files whose functions were called, from the root of the repository."""
        return {event.path for event in self.events if isinstance(event, Called)}

    def _called(self, frame: FrameType) -> None:
        code = frame.f_code
        if not self._is_served(code) or frame in self._begun:
            return
        if code.co_flags & _RESUMED:
            # It is called again each time that it goes on after a wait.
            self._begun.add(frame)
        thread = threading.current_thread().name
        name = self._engine.get(code, "")
        given = _arguments(frame) if name else {}
        self.events.append(Called(code, thread, self._depth(frame), name, given))
        if self.stop_at and code.co_qualname.endswith(self.stop_at):
            self.stop_at = ""
            pdb.Pdb(nosigint=True).set_trace(frame)

    def _is_served(self, code: CodeType) -> bool:
        file = code.co_filename
        is_ours = file.startswith(self._package) and not file.startswith(_NOT_SERVED)
        # A module's own code is what an import inside a function runs.
        return is_ours and code.co_name != "<module>"

    def _depth(self, frame: FrameType) -> int:
        depth, outer = 0, frame.f_back
        while outer is not None:
            depth += self._is_served(outer.f_code)
            outer = outer.f_back
        return depth

    def _is_for_engine(self, frame: FrameType) -> bool:
        caller = frame.f_back
        return caller is not None and caller.f_code.co_filename.startswith(_ENGINES)

    def _observe(self, connection: apsw.Connection) -> None:
        connection.exec_trace = self._stated

    def _stated(self, _: object, sql: str, values: Any) -> bool:
        """Record a statement; True lets SQLite run it."""
        if self.is_on:
            given = values.values() if isinstance(values, Mapping) else values or ()
            self.events.append(Stated(sql, tuple(given), threading.current_thread().name))
        return True


def _arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: frame.f_locals[name] for name in names if name != "self"}
