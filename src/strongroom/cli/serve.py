"""`strongroom serve`: serves with the settings that the user gave, until a signal.

Lives here: the process, signals, what is printed. Must not live here: the flags (flags/table.py),
how a server is put together (app.py), what settings mean (config.py).
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import typer

from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.command import values_of
from strongroom.cli.flags.table import FLAGS

if TYPE_CHECKING:
    from strongroom.app import App
    from strongroom.config import Settings
    from strongroom.engines.base import EngineError

_log = logging.getLogger(__name__)

HELP = """
Serve until SIGTERM or SIGINT.

Without flags it serves the development account on this machine, so that the
connection string UseDevelopmentStorage=true works, and keeps its data in
./strongroom-data.

Accounts come from --account, from the environment (STRONGROOM_ACCOUNTS, else
AZURITE_ACCOUNTS: NAME:KEY or NAME:KEY1:KEY2, with ; between accounts) and from
the accounts file, which is read again when it has changed. If no account is
given, the development account is served.

Each flag has an environment variable: STRONGROOM_ and its name in capitals,
with _ for -, such as STRONGROOM_BLOB_PORT. A switch is true or false there, and
blanks separate several values. --config FILE names a TOML file whose keys are
the names of flags. The order is: flag, environment, file, default. --no-NAME
turns off a switch that the environment or the file turns on.

Bearer tokens (OAuth) are refused unless --oauth-issuer and --oauth-keys say
whose are accepted. strongroom role says what their users may do.

Examples

  strongroom serve
  strongroom serve --data /srv/strongroom --tls
  strongroom serve --host 0.0.0.0 --cert cert.pem --key key.pem
  strongroom serve --host 0.0.0.0 --own-host store.example.net
  strongroom serve --in-memory --test-clock --port-base 0
  strongroom serve --one-port 8080
  strongroom serve --smb
  strongroom serve --config /etc/strongroom.toml
  STRONGROOM_ACCOUNTS='orders:a2V5' strongroom serve --blob-port 11000

Exit codes are those of strongroom --help.
"""

# The thresholds of Python's three generations of objects: new objects, and passes of the generation
# below. A pass delays all requests. Requests and ended connections leave no cycles, so nearly all
# objects are freed without a pass. One of the second generation looks at some 4,500 objects, which
# takes some milliseconds at most. One of the third looks at all of them, so it is rare.
GC_THRESHOLDS = (1_500, 1, 3_500)


def serve(context: typer.Context) -> None:
    """Serve with the settings that the flags, the environment and the defaults give."""
    from strongroom.cli.flags.settings import settings_of

    values = values_of(context, os.environ)
    run(settings_of(FLAGS, values, os.environ))


def run(settings: Settings) -> None:
    """Serve in this process until a signal or a failure ends it."""
    gc.disable()  # a pass while modules load frees nothing, since what they make stays
    from strongroom.app import CannotListen, DataUnusable
    from strongroom.cli.event_loop import run as run_to_end
    from strongroom.config import ConfigError
    from strongroom.servers.telemetry import set_up_logging

    set_up_logging(settings.log_level, settings.log_format)
    # Python's default would start a pass at every 700 new objects, most of which live briefly. The
    # objects of the program itself need no pass at all.
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    gc.enable()
    try:
        broken = run_to_end(_until_signal(settings))
    except ConfigError as error:
        fail(Exit.SETTINGS, str(error))
    except DataUnusable as error:
        fail(Exit.DATA, str(error))
    except CannotListen as error:
        fail(Exit.LISTEN, str(error))
    except MemoryError:
        _exit_at_once(
            "memory ran out, or the system starts no more threads. Every acknowledged change is "
            "kept; raise the limit (ulimit -v, ulimit -u, the container's), then start again."
        )
    except KeyboardInterrupt:
        # The second Ctrl-C. All acknowledged changes are durable nevertheless.
        raise typer.Exit(Exit.INTERRUPTED.value) from None
    if broken is not None:
        fail(
            Exit.STORAGE,
            f"the disk failed, so the server stopped: {broken}. Everything that was answered is "
            "kept; look at the disk, then start again.",
        )


async def _until_signal(settings: Settings) -> EngineError | None:
    import asyncio

    from strongroom.app import serve as serve_app
    from strongroom.cli.serving.announcements import Announcements
    from strongroom.cli.serving.banner import banner
    from strongroom.cli.serving.ready_file import ReadyFile
    from strongroom.cli.serving.service_manager import ServiceManager
    from strongroom.clock import SystemClock
    from strongroom.platform.event_loops import forget_signal, on_signals
    from strongroom.platform.signals import STOP_SIGNALS

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    ready_file = None if settings.ready_file is None else ReadyFile(settings.ready_file)
    announce = Announcements(ServiceManager.of(os.environ, os.getpid()), ready_file)

    def on_signal(name: str) -> None:
        if not stop.is_set():
            _log.info("%s: no new connections; requests in flight may finish", name)
            announce.stopping()
        stop.set()
        # A second signal ends the process without waiting.
        for number in STOP_SIGNALS:
            forget_signal(loop, number)

    for number in STOP_SIGNALS:
        on_signals(loop, (number,), partial(on_signal, number.name))

    def started(app: App) -> None:
        announce.ready(app)
        typer.echo(banner(app))

    try:
        return await serve_app(settings, SystemClock(), stop, started, _exit_at_once)
    finally:
        announce.end()


def _exit_at_once(why: str) -> None:
    """End the process at once: an orderly end needs memory, and answered changes are durable."""
    os.write(sys.stderr.fileno(), f"strongroom: {why}\n".encode())
    os._exit(Exit.STORAGE.value)
