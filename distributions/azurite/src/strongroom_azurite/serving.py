"""Serves a plan: the lines at the right moments, the import before it, the exit code after it.

Lives here: the order of what happens. Must not live here: texts of lines (lines.py), how a server
runs (strongroom.cli.serving.until_signal).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from strongroom.cli.exits import Exit
from strongroom.cli.serving.until_signal import Program, run
from strongroom.config import PfxFile
from strongroom_azurite import lines, old_folder
from strongroom_azurite.commands import Command
from strongroom_azurite.password_file import password_file
from strongroom_azurite.plan import Plan

if TYPE_CHECKING:
    from strongroom.app import App


def serve(command: Command, plan: Plan, memory_bytes: int) -> int:
    """Do what is planned; return the exit code.

    Arguments:
        memory_bytes: the machine's memory.
    """
    for warning in plan.warnings:
        say(command, f"WARNING: {warning}")
    for remark in plan.remarks:
        say(command, remark)
    code = _prepare(command, plan)
    if code:
        return code
    limit_bytes = plan.settings.memory_max_bytes
    if limit_bytes is not None:
        lines.write_lines([lines.in_memory(limit_bytes, memory_bytes)])
    first, *_ = command.services
    lines.write_lines([lines.starting(command, first, plan.address(first))])
    return _serve(command, plan)


def say(command: Command, text: str) -> None:
    """Print a text on standard error, where nobody waits for a line."""
    print(f"{command.name}: {text}", file=sys.stderr, flush=True)


def _prepare(command: Command, plan: Plan) -> int:
    """Make the folders, and import what Azurite left if that is asked for; return 0 if all is
    there."""
    location, debug_log = plan.location, plan.settings.log.debug_file
    try:
        code = 0 if location is None else _look_at(command, location, plan.imports)
    except OSError as error:
        say(command, f"the folder {location} cannot be used: {error.strerror}")
        return Exit.DATA.value
    if code:
        return code
    for folder in (location, None if debug_log is None else debug_log.parent):
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            say(command, f"the folder {folder} cannot be made: {error.strerror}")
            return Exit.DATA.value
    return Exit.DONE.value


def _look_at(command: Command, location: Path, imports: bool) -> int:
    """Import what Azurite left in a folder, or say what to type; return 0 if it can be served."""
    if old_folder.is_data_directory(location):
        why = "is itself a data directory of Strongroom. Name the folder above it as --location"
        say(command, f"{location} {why}, or type: strongroom serve --data {location}")
        return Exit.DATA.value
    databases = old_folder.databases_in(location)
    if not databases or old_folder.is_imported(location):
        return Exit.DONE.value
    if imports:
        return _import(command, location)
    say(command, old_folder.what_to_type(command.name, location, databases))
    return Exit.SETTINGS.value


def _import(command: Command, location: Path) -> int:
    """Import what Azurite left in a folder; return 0 if the result can be served.

    What was skipped is reported by the import, and its data is served without it.
    """
    arguments = old_folder.import_command(location)
    # SIGTERM must not leave the import behind: subprocess ends it when an exception passes.
    before = signal.signal(signal.SIGTERM, _end)
    try:
        done = subprocess.run(arguments, stdout=sys.stderr, check=False)  # noqa: S603 - no shell
    finally:
        signal.signal(signal.SIGTERM, before)
    if done.returncode == Exit.REFUSED:
        say(command, "WARNING: the import left something out; it is listed above")
        return Exit.DONE.value
    return done.returncode


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def _serve(command: Command, plan: Plan) -> int:
    """Serve, with the certificate of a PFX file if there is one."""
    if plan.pfx is None:
        return run(plan.settings, _program(command, plan, str))
    with password_file(plan.pfx.password) as path:
        settings = replace(plan.settings, tls=PfxFile(plan.pfx.file, path))
        # The path means nothing to a reader, who gave a flag.
        return run(settings, _program(command, plan, lambda text: text.replace(str(path), "--pwd")))


def _program(command: Command, plan: Plan, reworded: Callable[[str], str]) -> Program:
    def started(app: App) -> None:
        lines.write_lines(_started_lines(command, plan, app))
        if "file" in plan.services and not plan.is_silent:
            say(command, f"Files are served at {plan.address('file', app.ports['file']).url}")

    return Program(
        command.name,
        started,
        stopping=lambda: lines.write_lines(map(lines.closing, command.services)),
        stopped=lambda: lines.write_lines(map(lines.closed, command.services)),
        explained=lambda error: reworded(_explained(error)),
    )


def _started_lines(command: Command, plan: Plan, app: App) -> Iterator[str]:
    """Yield the lines after the first one, which was printed before anything was opened."""
    for number, service in enumerate(command.services):
        address = plan.address(service, app.ports[service])
        if number:
            yield lines.starting(command, service, plan.address(service))
        yield lines.listening(command, service, address)


def _explained(error: Exception) -> str:
    """Return the text of an error with the flags of these commands."""
    from strongroom.app import CannotListen

    refused = error.refused if isinstance(error, CannotListen) else None
    if refused is None:
        return str(error)
    if refused.name is None:
        return f"{refused.host!r} is no name or address of this machine ({refused.reason})"
    return (
        f"cannot listen on {refused.host} port {refused.port} for the {refused.name.title()} "
        f"service: {refused.reason}. Choose another port by --{refused.name}Port, or "
        f"--{refused.name}Port 0 for a free one."
    )
