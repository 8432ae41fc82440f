"""`docs/azurite-command.md`: its table of flags, from the declaration in strongroom-azurite.

Lives here: the generation of the table. Must not live here: what a flag does
(strongroom_azurite.flags), the rest of the page, which people write.

    python -m tests.tidy.azurite_page       writes the table anew
"""

from __future__ import annotations

from strongroom_azurite.commands import COMMANDS
from strongroom_azurite.flags import FLAGS, Flag, commands_of
from tests.tidy.sources import ROOT

PAGE = ROOT / "docs" / "azurite-command.md"
BEGIN = "<!-- made by python -m tests.tidy.azurite_page -->\n"
END = "<!-- end of what is made -->\n"
_HEAD = (
    "| flag | commands | Azurite 3.35 | here | said on standard error |\n" + "| --- " * 5 + "|\n"
)


def table() -> str:
    """Return the table, a row for each flag."""
    return _HEAD + "".join(map(_row, FLAGS))


def page(present: str) -> str:
    """Return the page with the table in its place."""
    before, _, rest = present.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _row(flag: Flag) -> str:
    letter = f"`-{flag.short}`, " if flag.short else ""
    typed = f"{letter}`{f'--{flag.name} {flag.value}'.rstrip()}`"
    commands = commands_of(flag)
    names = "all" if commands == COMMANDS else ", ".join(f"`{one.name}`" for one in commands)
    peer = "has no such flag" if flag.is_own else flag.peer
    said = f"`--{flag.name} {flag.remark}`" if flag.remark else "nothing"
    return f"| {typed} | {names} | {peer} | {flag.ours} | {said} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
