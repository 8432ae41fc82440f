"""A program that serves: one server in a process of its own, until a signal or a failure ends it.

Lives here: signals, the collector of garbage, exit codes of a server. Must not live here: how a
server is put together (app.py). Two programs use it: `strongroom serve`, and the distribution
strongroom-azurite (docs/reference/serving.md).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from strongroom.cli.exits import Exit

if TYPE_CHECKING:
    from strongroom.app import App
    from strongroom.config import Settings
    from strongroom.engines.base import EngineError

# The thresholds of Python's three generations of objects: new objects, and passes of the generation
# below. A pass delays all requests. Requests and ended connections leave no cycles, so nearly all
# objects are freed without a pass. One of the second generation looks at some 4,500 objects, which
# takes some milliseconds at most. One of the third looks at all of them, so it is rare.
GC_THRESHOLDS: Final = (1_500, 1, 3_500)
_log = logging.getLogger(__name__)


def _nothing() -> None:
    """A stage of which a program says nothing."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a program prints at the stages of its server's life.

    Attributes:
        name: what its errors begin with.
        started: called when everything is open; the ports are `App.ports`.
        tell: prints a line about what a setup has made.
        stopping: called at the first signal, before requests in flight are finished.
        stopped: called after an orderly end.
        explained: the text of an error of the start, which names the program's own flags. It gets
            ConfigError, DataUnusable and CannotListen.
    """

    name: str
    started: Callable[[App], None]
    tell: Callable[[str], None] = print
    stopping: Callable[[], None] = _nothing
    stopped: Callable[[], None] = _nothing
    explained: Callable[[Exception], str] = str


def run(settings: Settings, program: Program) -> int:
    """Serve until SIGTERM, SIGINT or a failure.

    Returns: the exit code, one of `Exit`. The reason of a failure is printed on standard error. If
    memory runs out, the process ends within this call.
    """
    gc.disable()  # a pass while modules load frees nothing, since what they make stays
    from strongroom.app import CannotListen, DatabaseAway, DataUnusable
    from strongroom.cli.event_loop import run as run_to_end
    from strongroom.config import ConfigError, check_logs
    from strongroom.servers.telemetry import set_up_logging

    try:
        check_logs(settings)
        set_up_logging(settings.log.level, settings.log.format, settings.log.debug_file)
    except OSError as error:
        why = f"the debug log {settings.log.debug_file} cannot be written: {error.strerror}"
        return _failed(program, Exit.SETTINGS, why)
    except ConfigError as error:
        return _failed(program, Exit.SETTINGS, program.explained(error))
    # Python's default would start a pass at every 700 new objects, most of which live briefly. The
    # objects of the program itself need no pass at all.
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    gc.enable()
    try:
        broken = run_to_end(_until_signal(settings, program))
    except ConfigError as error:
        return _failed(program, Exit.SETTINGS, program.explained(error))
    except DatabaseAway as error:
        return _failed(program, Exit.UNAVAILABLE, program.explained(error))
    except DataUnusable as error:
        return _failed(program, Exit.DATA, program.explained(error))
    except CannotListen as error:
        return _failed(program, Exit.LISTEN, program.explained(error))
    except MemoryError:
        _exit_at_once(
            program,
            "memory ran out, or the system starts no more threads. Every acknowledged change is "
            "kept; raise the limit (ulimit -v, ulimit -u, the container's), then start again.",
        )
    except KeyboardInterrupt:
        # The second Ctrl-C. All acknowledged changes are durable nevertheless.
        return Exit.INTERRUPTED.value
    if broken is not None:
        return _failed(program, Exit.STORAGE, _why_stopped(settings, broken))
    program.stopped()
    return Exit.DONE.value


def _why_stopped(settings: Settings, broken: EngineError) -> str:
    if settings.store is not None:
        from strongroom.engines.bodies.base import BodiesBroken, BodiesUnfit
        from strongroom.engines.postgres.sessions.session import StoreReplaced

        if isinstance(broken, StoreReplaced):
            return f"this server stopped: {broken}. Start it again, and it serves the new one."
        if isinstance(broken, BodiesUnfit):
            return f"this server stopped: {broken}."
        if isinstance(broken, BodiesBroken):
            return (
                f"this server stopped: {broken}. Everything that was answered is kept; look at the "
                "disk of that folder, then start again."
            )
        return (
            f"this server stopped: {broken}. Another gateway may serve the store now. Everything "
            "that was answered is kept; start it again, and it serves or waits as before."
        )
    return (
        f"the disk failed, so the server stopped: {broken}. Everything that was answered is kept; "
        "look at the disk, then start again."
    )


async def _until_signal(settings: Settings, program: Program) -> EngineError | None:
    from strongroom.app import App, serve
    from strongroom.cli.serving.announcements import Announcements
    from strongroom.cli.serving.ready_file import ReadyFile
    from strongroom.cli.serving.service_manager import ServiceManager
    from strongroom.clock import SystemClock
    from strongroom.platform.event_loops import forget_signal, on_signals
    from strongroom.platform.signals import REOPENING_SIGNALS, STOP_SIGNALS

    if settings.setup is not None and settings.setup.only:
        await App(settings, SystemClock(), program.tell).set_up()
        return None
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    ready_file = None if settings.ready_file is None else ReadyFile(settings.ready_file)
    announce = Announcements(ServiceManager.of(os.environ, os.getpid()), ready_file)

    def on_signal(name: str) -> None:
        if not stop.is_set():
            _log.info("%s: no new connections; requests in flight may finish", name)
            announce.stopping()
            program.stopping()
        stop.set()
        # A second signal ends the process without waiting.
        for number in STOP_SIGNALS:
            forget_signal(loop, number)

    for number in STOP_SIGNALS:
        on_signals(loop, (number,), partial(on_signal, number.name))

    def waits(why: str) -> None:
        announce.waiting(why)
        program.tell(why)

    def started(app: App) -> None:
        access_log = app.observation.access_log
        if access_log is not None:
            on_signals(loop, REOPENING_SIGNALS, access_log.writer.reopen)
        if app.console is not None:
            # The part of the console that uses the toolkit, which nothing below `cli` knows.
            from strongroom.console.serving import open_coordination

            at_end.callback(open_coordination(app))
        announce.ready(app)
        program.started(app)

    try:
        with ExitStack() as at_end:
            give_up, clock = partial(_exit_at_once, program), SystemClock()
            return await serve(settings, clock, stop, started, give_up, program.tell, waits=waits)
    finally:
        announce.end()


def _failed(program: Program, code: Exit, why: str) -> int:
    print(f"{program.name}: {why}", file=sys.stderr)
    return code.value


def _exit_at_once(program: Program, why: str) -> None:
    """End the process at once: an orderly end needs memory, and answered changes are durable."""
    os.write(sys.stderr.fileno(), f"{program.name}: {why}\n".encode())
    os._exit(Exit.STORAGE.value)
