"""The command's options, made from the table of flags.

Lives here: how a flag is typed, and its line in `--help`. Must not live here: what the values mean;
each arrives as it was typed (given.py reads it).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperOption

from strongroom.cli.flags.flag import Flag
from strongroom.cli.flags.given import Given, Values, given_value, given_values
from strongroom.cli.flags.kinds import text_of
from strongroom.cli.flags.ports import refuse_port, refuse_twice, with_base
from strongroom.cli.flags.rules import agreed
from strongroom.cli.flags.table import CONFIG, FLAGS, SECTIONS
from strongroom.cli.layout import CommandWithLayout


class FlagOption(TyperOption):
    """The option of one flag; its value is the typed text. A switch has `--no-NAME` too."""

    def __init__(self, flag: Flag) -> None:
        switch = flag.kind.is_switch
        super().__init__(
            param_decls=[f"{flag.option}/--no-{flag.name}" if switch else flag.option],
            type=None if switch else str,
            is_flag=switch,
            multiple=flag.repeats,
            metavar=flag.kind.placeholder or None,
            help=flag.help,
        )
        self.flag = flag

    def get_help_record(self, ctx: Any) -> tuple[str, str]:
        flag = self.flag
        default = "" if flag.default in (None, False, (), 0.0) else f" [default: {flag.default}]"
        return f"{flag.option} {flag.kind.placeholder}".rstrip(), flag.help + default


class _PortOption(TyperOption):
    """`--port`, which is refused."""

    def __init__(self) -> None:
        super().__init__(param_decls=["--port"], type=str, hidden=True)


class FlagsCommand(CommandWithLayout):
    """A command whose options are the table's. Its function gets the context alone."""

    sections = tuple(
        (section.title, tuple(flag.option for flag in section.flags)) for section in SECTIONS
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += [*map(FlagOption, FLAGS), _PortOption()]

    def invoke(self, ctx: Any) -> Any:
        assert self.callback is not None
        return ctx.invoke(self.callback)


def values_of(context: Any, environment: Mapping[str, str]) -> Values:
    """Return the values of all flags for one call of the command. End the command if some cannot
    be used."""
    if context.params["port"] is not None:
        refuse_port(context.params["port"])
    typed = _typed(context)
    path = given_value(CONFIG, typed, environment).value
    file = _of_file(path) if isinstance(path, Path) else {}
    values = with_base(agreed(FLAGS, given_values(FLAGS, typed, environment, file)))
    refuse_twice(values)
    return values


def _of_file(path: Path) -> Mapping[str, Given]:
    from strongroom.cli.flags.config_file import values_of_file

    return values_of_file(path, FLAGS)


def _typed(context: Any) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for flag in FLAGS:
        value = context.params[flag.parameter]
        if value is not None and value != ():
            several = value if flag.repeats else [value]
            texts[flag.name] = [text_of(one) for one in several]
    return texts
