"""The lines on standard output, in order, and nothing else there."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.testing.ports import HOST
from strongroom_azurite.commands import AZURITE, AZURITE_BLOB, AZURITE_QUEUE, AZURITE_TABLE, Command
from tests.azurite.started import Started, ports

ENDS = ["is closing...", "successfully closed"]


def _lines_of(command: Command, found: dict[str, int]) -> list[str]:
    """Return the lines of a run, transcribed from the peer's output."""
    if command == AZURITE:
        lines = [
            f"Azurite {service.title()} service is {verb} at http://{HOST}:{port}"
            for service, port in found.items()
            for verb in ("starting", "successfully listening")
        ]
    else:
        [(service, port)] = found.items()
        name, where = f"Azurite {service.title()} service", f"{HOST}:{port}"
        ready = (
            f"successfully started on {where}"
            if service == "table"
            else f"successfully listens on http://{where}"
        )
        lines = [f"{name} is starting on {where}", f"{name} {ready}"]
    return lines + [f"Azurite {service.title()} service {end}" for end in ENDS for service in found]


@pytest.mark.parametrize(
    "command", [AZURITE, AZURITE_BLOB, AZURITE_QUEUE, AZURITE_TABLE], ids=lambda one: one.name
)
def test_each_command_prints_its_lines_in_order(
    command: Command, commands: Path, tmp_path: Path
) -> None:
    """A pipe gets each line at once: the last one of a start is read while the server runs."""
    found, flags = ports(*command.services)
    expected = _lines_of(command, found)
    with Started(commands, [command.name, *flags, "--loose"], tmp_path) as started:
        for line in expected[: 2 * len(found)]:
            assert started.next_line() == line
        assert started.is_running
        assert started.stop() == 0
        assert started.out == expected
        assert started.err.splitlines() == [
            f"{command.name}: --loose has no effect: a request for what is not served is refused, "
            "so that nothing is lost"
        ]


def test_the_line_about_memory_comes_first(commands: Path, tmp_path: Path) -> None:
    _, flags = ports("blob")
    line = ["azurite-blob", *flags, "--inMemoryPersistence", "--extentMemoryLimit", "64"]
    with Started(commands, line, tmp_path) as started:
        start = "In-memory extent storage is enabled with a limit of 64.00 MB (67108864 bytes, "
        assert started.next_line().startswith(start)
        assert started.next_line().startswith("Azurite Blob service is starting on ")


def test_a_free_port_is_named_in_the_line(commands: Path, tmp_path: Path) -> None:
    line = ["azurite-blob", "--blobPort", "0", "--inMemoryPersistence"]
    with Started(commands, line, tmp_path) as started:
        port = int(started.wait_for(r"successfully listens on http://127\.0\.0\.1:(\d+)$")[1])
        started.wait_for_port(port)


def test_files_are_named_on_standard_error(commands: Path, tmp_path: Path) -> None:
    found, flags = ports("blob", "queue", "table", "file")
    with Started(commands, ["azurite", *flags, "--inMemoryPersistence"], tmp_path) as started:
        started.wait_for_port(found["file"])
        started.wait_for("Table service is successfully listening")
        assert started.stop() == 0
        assert not [line for line in started.out if "File" in line]
        assert f"azurite: Files are served at http://{HOST}:{found['file']}" in started.err


def test_ctrl_c_stops_it_as_sigterm_does(commands: Path, tmp_path: Path) -> None:
    _, flags = ports("blob")
    with Started(commands, ["azurite-blob", *flags], tmp_path) as started:
        started.wait_for("successfully listens")
        started.send(signal.SIGINT)
        assert started.ended() == 0
        assert started.out[-1] == "Azurite Blob service successfully closed"


def test_a_taken_port_is_an_error_with_these_commands_flags(commands: Path, tmp_path: Path) -> None:
    found, flags = ports("blob")
    with (
        socket.create_server((HOST, found["blob"])),
        Started(commands, ["azurite-blob", *flags, "--inMemoryPersistence"], tmp_path) as started,
    ):
        assert started.ended() == Exit.LISTEN
        assert f"cannot listen on {HOST} port {found['blob']} for the Blob service" in started.err
        assert "--blobPort 0 for a free one" in started.err
        assert "--blob-port" not in started.err


def test_a_reader_that_goes_away_does_not_end_the_server(commands: Path, tmp_path: Path) -> None:
    found, flags = ports("blob")
    with Started(commands, ["azurite-blob", *flags], tmp_path, reads=False) as started:
        started.wait_for_port(found["blob"])
        assert started.is_running
        started.send(signal.SIGTERM)
        assert started.ended() == 0
        assert "Traceback" not in started.err and "Broken" not in started.err
