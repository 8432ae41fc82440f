"""`docs/smbtorture.md`: the tests of smbtorture that pass, compared with smbd.

Lives here: the generation of the page from the list files. Must not live here: the content of the
lists (gate.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.smbtorture.gate import passes_each_time
from tests.smbtorture.names import FOLDER, suite_of

PAGE: Final = FOLDER.parents[1] / "docs" / "smbtorture.md"
_INTRODUCTION: Final = """\
# Samba's tests of SMB servers

`python -m tests.smbtorture page` writes this page. Do not edit it by hand.

smbtorture is Samba's test suite for SMB servers. smbd is Samba's own server. The tests that
Strongroom should pass are called the gate here. A test is in the gate if Debian's smbd 4.17 passes
it in three of three runs. For these runs smbd serves an ordinary user, and loads no modules. Tests
that smbd fails because it differs from Windows are in the gate too.

`make proof` runs the gate against Strongroom twice: with signed sessions, and with encrypted ones.
`make interop` runs a quick subset of {subset} tests with each change. Each test starts with an
empty share.

| column | meaning |
| --- | --- |
| gate | tests of the suite that are in the gate |
| smbd | tests of the gate that smbd 4.17 passes in each of three runs |
| Strongroom | tests of the gate that Strongroom passes, signed and encrypted |

"""


@dataclass(frozen=True, slots=True)
class Lists:
    """The list files that are the input of the page: names with their notes."""

    smbd: Mapping[str, str]
    gate: Mapping[str, str]
    wanted: Mapping[str, str]
    excluded: Mapping[str, str]
    signed: Mapping[str, str]
    misses: Mapping[str, str]
    subset: Mapping[str, str]


def text(lists: Lists) -> str:
    """The page."""
    lines = [
        _INTRODUCTION.format(subset=len(lists.subset)),
        *_table(lists),
        "",
        "## Tests of the gate that Strongroom does not pass",
        "",
        *(_reasons(lists.misses) if lists.misses else ["Strongroom passes the whole gate."]),
        "",
        "## Tests of the gate that smbd does not pass",
        "",
        "smbd passes all tests of the gate but these. It differs from Windows, or loses events.",
        "",
        *_reasons(lists.wanted),
        "",
        "## Tests that are run with signed sessions only",
        "",
        *_reasons(lists.signed),
        "",
        "## Tests that are not in the gate",
        "",
        *_reasons(lists.excluded),
        "",
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def _table(lists: Lists) -> Iterator[str]:
    yield "| suite | gate | smbd | Strongroom |"
    yield "| --- | --- | --- | --- |"
    for suite in dict.fromkeys(map(suite_of, lists.smbd)):
        names = [name for name in lists.gate if suite_of(name) == suite]
        if names:
            yield _row(f"`smb2.{suite}`", names, lists)
    yield _row("**all**", list(lists.gate), lists)


def _row(title: str, names: list[str], lists: Lists) -> str:
    of_smbd = sum(passes_each_time(lists.smbd[name]) for name in names)
    ours = sum(name not in lists.misses for name in names)
    return f"| {title} | {len(names)} | {of_smbd} | {ours} |"


def _reasons(notes: Mapping[str, str]) -> Iterator[str]:
    """Yield a table with a line for each reason, and its tests."""
    yield "| tests | reason |"
    yield "| --- | --- |"
    by_reason: dict[str, list[str]] = {}
    for name, reason in notes.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"| {'<br>'.join(_joined(names))} | {reason} |"


def _joined(names: Iterable[str]) -> Iterator[str]:
    """The names by suite: `lock`: `cancel`, `unlock`."""
    by_suite: dict[str, list[str]] = {}
    for name in names:
        by_suite.setdefault(suite_of(name), []).append(name)
    for suite, found in by_suite.items():
        last = [name.split(".", 2)[2] for name in found if name.count(".") > 1]
        yield f"{suite}: {', '.join(f'`{name}`' for name in last)}" if last else f"`{suite}`"


def write(lists: Lists, page: Path = PAGE) -> None:
    """Write the page anew."""
    page.write_text(text(lists), encoding="utf-8")
