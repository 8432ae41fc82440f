"""The commands of a block: which ones there are, and whether they are well formed.

Lives here: reading shell lines as a reader types them; the check of a `strongroom` command that is
not run. Must not live here: running (follow.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, cast

import typer.main

from strongroom.cli import app

# What Typer raises for wrong arguments: the class above the one that it exports.
_Usage = cast("type[Exception]", typer.BadParameter.__mro__[1])

_OPERATORS = frozenset(("&&", "||", "|", "&", ";", ">", ">>", "<", "2>&1", "$"))
# These start processes, wait for others or end by signals.
_ALONE = [
    [name] for name in ("serve", "lock", "elect", "sem", "rwlock", "barrier", "members", "gate")
]


def lines_of(code: str) -> list[str]:
    """Return the lines of a block of commands; `\\` joins two, and a prompt is left out.

    Where there are prompts, lines without one are output.
    """
    joined = code.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in joined):
        joined = [line[2:] for line in joined if line.startswith("$ ")]
    return [line for line in joined if line.strip() and not line.startswith("#")]


def words_of(line: str) -> list[str] | None:
    """Return the words of a plain command; None if only a shell can run the line."""
    words = shlex.split(line, comments=True)
    shell = _OPERATORS.intersection(words) or re.search(r"[$`(>]|=\S*'", line.partition(" #")[0])
    return None if shell else words


def runs_here(words: list[str] | None) -> bool:
    """Whether `in_process` can run a plain command."""
    return words is not None and words[:1] == ["strongroom"] and words[1:2] not in _ALONE


def complaints(code: str) -> Iterator[str]:
    """Yield what is wrong with the `strongroom` commands of a block; nothing is run."""
    for line in lines_of(code):
        for arguments in _strongroom_in(line):
            try:
                _parse(typer.main.get_command(app), arguments)
            except (_Usage, typer.Exit) as error:
                yield f"{line.strip()}: {error}"


def _strongroom_in(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each `strongroom` command of a line, up to the next operator."""
    words = shlex.split(line, comments=True)
    for at, word in enumerate(words):
        if word == "strongroom" and (
            at == 0 or words[at - 1] in _OPERATORS or "=" in words[at - 1]
        ):
            rest = words[at + 1 :]
            ends = [n for n, other in enumerate(rest) if other in _OPERATORS]
            yield rest[: ends[0]] if ends else rest


def _parse(command: Any, arguments: list[str]) -> None:
    """Parse the arguments down to the last command, without calling any."""
    parent = None
    while True:
        context = command.make_context(command.name, list(arguments), parent)
        if not hasattr(command, "resolve_command"):
            return
        arguments = [*context._protected_args, *context.args]
        if not arguments:
            return
        _, found, arguments = command.resolve_command(context, arguments)
        command, parent = found, context
