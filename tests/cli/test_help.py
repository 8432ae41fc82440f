"""Help, version and usage errors."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from strongroom import __version__
from strongroom.cli.exits import MEANINGS
from tests.cli.command import Ran, in_process, strongroom

OPERATING = Path(__file__).parents[2] / "docs" / "operating.md"
COMMANDS = [
    ["serve"],
    ["account"],
    ["account", "add"],
    ["account", "rotate"],
    ["account", "remove-old-key"],
    ["account", "list"],
    ["container"],
    ["container", "protect"],
    ["container", "unprotect"],
    ["container", "list"],
    ["files"],
    ["files", "handles"],
    ["files", "close"],
    ["backup"],
    ["restore"],
    ["doctor"],
    ["lock"],
    ["elect"],
    ["sem"],
    ["rwlock"],
    ["barrier"],
    ["members"],
    ["ids"],
    ["gate"],
    ["locks"],
    ["locks", "list"],
    ["locks", "show"],
    ["locks", "break"],
    ["check-store"],
    ["sim"],
]
WITH_EXAMPLES = [command[0] for command in COMMANDS if len(command) == 1]


@cache
def help_of(*command: str) -> Ran:
    """Return the output of `strongroom COMMAND --help`; several tests use it."""
    return in_process(*command, "--help")


def test_the_version_is_shown() -> None:
    assert strongroom("--version").out == f"strongroom {__version__}\n"


def test_a_process_says_what_the_tests_of_help_look_at() -> None:
    """The other tests here save the process, the one for what is right and for what is wrong."""
    for arguments in (["serve", "--help"], ["serve", "--blob-port", "65536"]):
        assert strongroom(*arguments) == in_process(*arguments)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: list[str]) -> None:
    ran = help_of(*command)
    assert ran.code == 0
    assert f"strongroom {' '.join(command)}" in ran.out


@pytest.mark.parametrize("verb", ["list", "watch", "join"])
def test_every_verb_of_members_explains_itself(verb: str) -> None:
    ran = help_of("members", "workers", verb)
    assert ran.code == 0 and "--store" in ran.out


@pytest.mark.parametrize("command", ["lock", "elect", "sem", "rwlock", "barrier"])
def test_commands_that_wait_name_their_exit_codes_and_their_store(command: str) -> None:
    out = help_of(command).out
    for word in ("--store", "--ttl", "--wait", "--quiet", "--verbose", "75", "76", "69"):
        assert re.search(rf"{word}\b", out), word


@pytest.mark.parametrize("command", WITH_EXAMPLES)
def test_help_shows_examples(command: str) -> None:
    out = help_of(command).out
    examples = out.partition("Examples")[2]
    assert f"strongroom {command}" in examples


def test_help_names_every_flag_and_keeps_its_colons() -> None:
    out = help_of("serve").out
    for flag in (
        *("--data", "--in-memory", "--host", "--blob-port", "--queue-port", "--table-port"),
        "--file-port",
        *("--cert", "--key", "--tls", "--accounts-file", "--account", "--test-clock"),
        *("--allow-development-key", "--host-suffix", "--copy-source-host", "--metrics-anywhere"),
        *("--own-host", "--log-level", "--log-format"),
    ):
        assert re.search(rf"{flag}\b", out), flag
    # Some renderers take `:KEY:` for the name of a little picture.
    assert "NAME:KEY1:KEY2" in out


def test_exit_codes_are_the_same_in_help_and_in_the_manual() -> None:
    out = help_of().out
    manual = OPERATING.read_text(encoding="utf-8")
    for code, meaning in MEANINGS.items():
        assert re.search(rf"^ *{code.value}  {re.escape(meaning)}", out, re.MULTILINE), meaning
        assert f"| {code.value} | {meaning} |" in manual


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--no-such-flag"],
        ["serve", "--blob-port", "65536"],
        ["serve", "--log-level", "loud"],
        ["serve", "--cert", "only.pem"],
        ["serve", "--tls", "--cert", "a.pem", "--key", "b.pem"],
        ["backup"],
        ["no-such-command"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    ran = in_process(*arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert ran.err
