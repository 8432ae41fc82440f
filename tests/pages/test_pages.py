"""Every block of the README and of the manual does what the page says, from top to bottom.

Two pages are followed by tests/interop, which has the programs that they speak of.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.testing.server import InProcessServer
from tests.pages.blocks import ROOT, Block, blocks
from tests.pages.commands import complaints
from tests.pages.follow import Follower
from tests.pages.python_runs import PythonRuns

ELSEWHERE = ("docs/clients.md", "docs/files.md")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
FOLLOWED = [page for page, text in PAGES.items() if any(one.is_run for one in blocks(text))]


@pytest.mark.parametrize("page", [page for page in FOLLOWED if page not in ELSEWHERE])
def test_a_page_can_be_followed(
    page: str, tmp_path: Path, shared: InProcessServer, python: PythonRuns
) -> None:
    assert Follower(tmp_path, shared, python).follow(PAGES[page])


def _block_of(text: str) -> Block:
    [found] = blocks(text)
    return found


def test_blocks_are_found_in_each_form() -> None:
    assert _block_of("```python\nx = 1\n```\n").is_run
    assert (
        _block_of("so:\n\n    strongroom serve\n    strongroom doctor D\n\nthen").language == "sh"
    )
    assert _block_of("so:\n\n    import os\n    os.getcwd()\n").language == "python"
    assert _block_of("```sh run.sh\ntrue\n```\n").name == "run.sh"
    assert not _block_of('```\n{"a": 1}\n```\n').is_run
    assert blocks("- an item\n\n    its second paragraph\n") == []


def test_an_outline_is_not_run_but_its_commands_exist() -> None:
    marked = _block_of("<!-- outline: two machines -->\n\n    strongroom serve --no-such 1\n")
    assert marked.outline == "two machines" and not marked.is_run
    assert [*complaints(marked.code)]
    assert not [*complaints("strongroom gate g wait --timeout 5 && ./start\n")]
    assert [*complaints("strongroom gate g wait --tineout 5 && ./start\n")]
    assert [*complaints("true && strongroom role list [--json]\n")]


def test_what_a_page_says_that_is_printed_is_compared(
    tmp_path: Path, shared: InProcessServer, python: PythonRuns
) -> None:
    page = "```sh\necho one\n```\n```python\nprint('two')\n```\nprints\n```text\none\n{}\n```\n"
    assert Follower(tmp_path, shared, python).follow(page.format("two")) == 2
    for line, broken in (
        (9, page.format("three")),
        (2, "```sh\nfalse\n```\n"),
        (2, "```python\n1 / 0\n```\n"),
        (2, "```sh\nstrongroom role nams\n```\n"),
    ):
        with pytest.raises(AssertionError, match=f"line {line}: "):
            Follower(tmp_path, shared, python).follow(broken)
