"""The layout of `--help`: texts wrapped once, to the terminal; flags whole; placeholders as NAME.

Lives here: how help is laid out, for all commands alike. Typer would wrap texts a second time that
are wrapped already, and cut the names of flags.

A text is paragraphs. An indented one is kept line by line (examples, exit codes).
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_group

from strongroom.cli.exits import Exit

if TYPE_CHECKING:
    Row = tuple[str, str]

WIDTH_MAX: Final = 100
_LEFT_MAX: Final = 28
_INDENT: Final = "  "
_BRIEF: Final = "strongroom.brief"
_RANGE = re.compile(r"(?:; )?(?:[\d.]+<=)?x(?:<=|>=)[\d.]+")
# The placeholders of values: by what options are called, else by the names of their types in Typer.
_PLACEHOLDERS: Final = (
    (re.compile(r"data$"), "DIR"),
    (re.compile(r".*_file$|cert$|key$"), "FILE"),
    (re.compile(r"(.*_)?port$"), "PORT"),
    (re.compile(r"ttl$|wait$|timeout$|grace$|every$|watch$"), "SECONDS"),
    (re.compile(r"store$|hints$|url$"), "URL"),
)
_BY_TYPE: Final = {"path": "PATH", "int": "N", "int range": "N", "float": "N"}

Sections = Sequence[tuple[str, Sequence[str]]]


class Formatter(Protocol):
    """The part of Typer's formatter that is used here."""

    def write(self, string: str) -> None:
        """Add to what is printed."""
        ...


class _Argument(TyperArgument):
    """An argument that usages show as NAME, [NAME] or NAME..., without braces."""

    def get_usage_pieces(self, ctx: Any) -> list[str]:
        shown = self.metavar or ""
        return [shown if self.required or shown.startswith("[") else f"[{shown}]"]


class CommandWithLayout(TyperCommand):
    """A command whose help is laid out here. `sections` has its options, under headings."""

    sections: Sections = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _name_placeholders(self.params)

    def format_help(self, ctx: Any, formatter: Formatter) -> None:
        _write(self, ctx, formatter, ())


class GroupWithLayout(TyperGroup):
    """A command of commands. `sections` has its options, under headings."""

    sections: Sections = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _name_placeholders(self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            ctx.meta[_BRIEF] = True  # the first steps are what is wanted
            typer.echo(ctx.get_help())
            ctx.exit(Exit.USAGE.value)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Formatter) -> None:
        _write(self, ctx, formatter, self.command_sections())

    def command_sections(self) -> list[tuple[str, list[Row]]]:
        rows = [(name, brief(command.help)) for name, command in self.commands.items()]
        return [("Commands", rows)] if rows else []


@dataclass(frozen=True, slots=True)
class Heading:
    """Commands under one heading.

    Attributes:
        commands: imports them, and returns an app that has them.
        briefs: the first sentence of each command's help, by its name.
    """

    title: str
    commands: Callable[[], typer.Typer]
    briefs: Mapping[str, str]


class CommandsOnDemand(dict[str, Any]):
    """Commands by their names; each heading's are imported when one of them is asked for."""

    def __init__(self, headings: Sequence[Heading]) -> None:
        super().__init__({name: one for one in headings for name in one.briefs})

    def __getitem__(self, name: str) -> Any:
        entry = super().__getitem__(name)
        if isinstance(entry, Heading):
            app = entry.commands()
            _lay_out_below(app)
            self.update(get_group(app).commands)
            entry = super().__getitem__(name)
        return entry

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - it is that method

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        return [self[name] for name in self]


class TopGroup(GroupWithLayout):
    """The program itself. `headings` has its commands."""

    headings: Sequence[Heading] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commands = CommandsOnDemand(self.headings)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def command_sections(self) -> list[tuple[str, list[Row]]]:
        return [(one.title, list(one.briefs.items())) for one in self.headings]


def _lay_out_below(app: typer.Typer) -> None:
    """Let this module lay out the help of all commands of an app."""
    for command in app.registered_commands:
        if not issubclass(command.cls or TyperCommand, CommandWithLayout):
            command.cls = CommandWithLayout
    for group in app.registered_groups:
        group.cls = GroupWithLayout
        if group.typer_instance is not None:
            _lay_out_below(group.typer_instance)


def _name_placeholders(params: Iterable[Any]) -> None:
    for param in params:
        if isinstance(param, TyperArgument):
            many = "" if param.nargs == 1 else "..."
            param.metavar = (param.metavar or (param.name or "").upper()) + many
            param.__class__ = _Argument
        elif isinstance(param, TyperOption) and param.metavar is None and not param.is_flag:
            name = param.type.name.strip("<>")
            choices: tuple[str, ...] = getattr(param.type, "choices", ())
            found = [shown for pattern, shown in _PLACEHOLDERS if pattern.match(param.name or "")]
            param.metavar = "|".join(choices) or (found or [_BY_TYPE.get(name, "TEXT")])[0]


def _write(command: Any, ctx: Any, formatter: Formatter, commands: Sequence[Any]) -> None:
    width = min(shutil.get_terminal_size().columns, WIDTH_MAX) - 2
    pieces = " ".join(command.collect_usage_pieces(ctx))
    usage = textwrap.wrap(f"Usage: {ctx.command_path} {pieces}", width, subsequent_indent=" " * 7)
    parts = ["\n".join(usage), *laid_out(command.help or "", width)]
    is_brief = bool(ctx.meta.get(_BRIEF))
    panels = {} if is_brief else dict(_panels(command, ctx))
    parts += [_section(title, rows, width) for title, rows in (*panels.items(), *commands)]
    if command.epilog:
        more = f"{ctx.command_path} --help shows the options and the exit codes."
        parts += [more] if is_brief else laid_out(command.epilog, width)
    formatter.write("\n" + "\n\n".join(part for part in parts if part) + "\n")


def laid_out(text: str, width: int) -> Iterator[str]:
    """Yield the paragraphs of a text, wrapped to `width`."""
    headed = re.sub(r"^(\w[\w ]*)\n\n(?=  )", r"\1:\n", text.strip("\n"), flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", headed):
        if "\n  " in paragraph or paragraph.startswith(_INDENT):
            yield "\n".join(_kept(line, width) for line in paragraph.splitlines())
        else:
            yield textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False)


def _kept(line: str, width: int) -> str:
    """Return an indented line as it is; one that is too long goes on below its second column."""
    left = re.match(r" *\S+ {2,}|( +)", line)
    indent = " " * (len(left[0]) if left else 2)
    wrapped = textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapped)


def _panels(command: Any, ctx: Any) -> Mapping[str, list[Row]]:
    """Return the rows of arguments and options, by the headings under which they are shown."""
    titles = {name: title for title, names in command.sections for name in names}
    panels: dict[str, list[Row]] = {title: [] for title in ("Arguments", *titles.values())}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            usual = "Arguments" if isinstance(param, TyperArgument) else "Options"
            listed = [titles[name] for name in param.opts if name in titles]
            row = (record[0], _without_range(record[1]))
            panels.setdefault((listed or [usual])[0], []).append(row)
    return {title: rows for title, rows in panels.items() if rows}


def _without_range(text: str) -> str:
    """Return a help text without the bounds of a number, which its error names, and `required`."""
    text = _RANGE.sub("", text).replace("; required]", "]").replace("[required]", "")
    return text.replace("[; ", "[").replace("[]", "").replace("  [", " [").strip()


def brief(text: str | None) -> str:
    """Return the first sentence of a command's help."""
    first = " ".join((text or "").strip().partition("\n\n")[0].split())
    return re.split(r"(?<=\w\.) (?=[A-Z])", first)[0]


def _section(title: str, rows: Sequence[Row], width: int) -> str:
    left = min(_LEFT_MAX, max(len(name) for name, _ in rows))
    column = len(_INDENT) + left + 2
    lines = [f"{title}:"]
    for name, text in rows:
        wrapped = textwrap.wrap(text, width - column, break_on_hyphens=False) or [""]
        if len(name) > left:
            lines.append(_INDENT + name)
            first = " " * column
        else:
            first = f"{_INDENT}{name:<{left}}  "
        lines.append((first + wrapped[0]).rstrip())
        lines += [" " * column + line for line in wrapped[1:]]
    return "\n".join(lines)
