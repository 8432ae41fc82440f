"""Help, version and usage errors."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperArgument

from strongroom import __version__
from strongroom.cli import app
from strongroom.cli.commands import HEADINGS
from strongroom.cli.exits import MEANINGS
from strongroom.cli.flags.table import FLAGS, SECTIONS
from strongroom.cli.layout import brief, laid_out
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
    ["status"],
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
    for flag in FLAGS:
        assert re.search(rf"^  {flag.option}\b", out, re.MULTILINE), flag.option
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


def every_command(
    command: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each command with the words that lead to it; a group's own argument is `x`."""
    yield path, command
    own = ("x",) * sum(isinstance(param, TyperArgument) for param in command.params)
    for name, one in getattr(command, "commands", {}).items():
        yield from every_command(one, (*path, *own, name))


COMMANDS_AT_80 = [
    pytest.param(path, command, id=" ".join(path) or "strongroom")
    for path, command in every_command(typer.main.get_command(app))
]


@pytest.mark.parametrize(("path", "command"), COMMANDS_AT_80)
def test_help_fits_80_columns_without_cutting_anything(path: tuple[str, ...], command: Any) -> None:
    out = in_process(*path, "--help", COLUMNS="80").out
    assert max(map(len, out.splitlines())) <= 80
    flat = " ".join(out.split())
    kept = [line for line in (command.help or "").splitlines() if line.startswith("  ")]
    assert [line for line in kept if f"\n{line}\n" not in out] == []
    for param in command.params:
        assert getattr(param, "hidden", False) or all(
            name in flat for name in param.opts if name.startswith("-")
        )
    assert "{" not in out.splitlines()[1]


def test_texts_are_wrapped_once() -> None:
    text = "one two three\nfour five\n\nExamples\n\n  strongroom serve\n"
    assert list(laid_out(text, 18)) == ["one two three four\nfive", "Examples:\n  strongroom serve"]
    assert list(laid_out("  4  a directory in use", 18)) == ["  4  a directory\n     in use"]


def test_bare_strongroom_is_short_and_begins_with_the_first_steps() -> None:
    ran = in_process(COLUMNS="80")
    assert len(ran.out.splitlines()) < 55
    assert "Exit codes:" not in ran.out and "Exit codes:" in help_of().out
    assert ran.out.index("strongroom serve") < ran.out.index("Who may do what:")


def test_usages_name_what_is_to_be_given() -> None:
    assert "lock [OPTIONS] NAME COMMAND..." in help_of("lock").out
    assert "gate NAME wait [OPTIONS]" in help_of("gate", "g", "wait").out
    assert "take [OPTIONS] [COUNT]" in help_of("ids", "orders", "take").out
    assert "gate NAME wait" in in_process("gate", "g", "wait", "--no").err


def test_the_flags_of_serve_stand_under_headings() -> None:
    out = help_of("serve").out
    for section in SECTIONS:
        assert f"\n{section.title}:\n" in out
    assert out.index("\nData:") < out.index("\n  --data ") < out.index("\nAddresses and ports:")


def test_each_command_of_a_data_directory_knows_a_store_too() -> None:
    of_directories = []
    for path, command in every_command(typer.main.get_command(app)):
        options = {option for one in command.params for option in one.opts}
        takes = {str(one.envvar) for one in command.params}
        # The data of a member is JSON.
        if "STRONGROOM_DATA" in takes or ("--data" in options and "join" not in path):
            of_directories.append(path)
            assert "--store-file" in options, path
    assert len(of_directories) > 10


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    group: Any = typer.main.get_command(app)
    listed = {name: text for one in HEADINGS for name, text in one.briefs.items()}
    assert list(listed) == list(group.commands)
    assert {name: brief(group.commands[name].help) for name in listed} == listed


def test_every_command_of_a_heading_is_listed() -> None:
    for one in HEADINGS:
        made = one.commands()
        names = {command.name for command in made.registered_commands}
        names |= {group.name for group in made.registered_groups}
        assert names == set(one.briefs)


def test_help_and_serve_import_only_what_they_need() -> None:
    """What takes long to import is imported where it is used."""
    program = (
        "import sys\n"
        "from strongroom.cli import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    needless = {"asyncio", "ssl", "msgspec", "apsw", "awscrt", "rich", "cryptography"}
    for arguments in (["--help"], ["serve", "--help"], ["lock", "--help"]):
        command = [sys.executable, "-c", program, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert needless & set(ran.stderr.split()) == set(), arguments


def test_a_server_starts_without_what_only_some_requests_need() -> None:
    program = "import strongroom.app, strongroom.cli.serving.banner, sys; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    needless = {"awscrt", "rich", "cryptography", "jwt", "prometheus_client", "http.server"}
    needless |= {"strongroom.servers.smb.transport.serving", "strongroom.servers.tracing.spans"}
    needless |= {"psycopg", "strongroom.engines.postgres"}
    assert needless & set(ran.stdout.split()) == set()
