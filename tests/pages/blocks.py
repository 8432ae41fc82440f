"""The blocks of a page of the manual: what a reader copies, what is shown, what is an outline.

Lives here: reading pages. Must not live here: running blocks (follow.py).

A block is fenced, or indented by four spaces. One that names commands is run as a reader would run
it. `<!-- outline: WHY -->` before a block says that it cannot be followed as it stands: it needs
several machines, a domain, a disaster. Its `strongroom` commands are checked all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"```(\w*)(?: (\S+))?$")
_OUTLINE = re.compile(r"<!-- outline: (\S.*) -->$")
_LIST_ITEM = re.compile(r"\s*([-*]|\d+\.) ")
_RUN = ("python", "javascript", "sh")
# A block without a language is one of commands if a line of it begins so.
_PROGRAMS = re.compile(
    r"^(\$ .*|(strongroom|python|pip|make|git|pytest|openssl|curl|rclone|restic|smbclient|mount|az|"
    r"azcopy|echo|export|cd|docker|\S+/bin/\w+)( .*)?)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page.

    Attributes:
        line: where it begins, counted from 1.
        language: `python`, `javascript` or `sh` are run; `text` is what the blocks before print,
            or anything else that is only shown.
        name: of the file that a reader makes of it, and does not run; empty for none.
        outline: why it is not run; empty if it is.
        fenced: whether it has a fence.
    """

    line: int
    language: str
    code: str
    name: str = ""
    outline: str = ""
    fenced: bool = True

    @property
    def is_run(self) -> bool:
        """Whether it is to be followed."""
        return self.language in _RUN and not self.outline


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page in the order in which a reader meets them."""
    return list(_blocks(text.splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    at, last, outline = 0, "", ""
    while at < len(lines):
        line = lines[at]
        marked = _OUTLINE.match(line)
        fence = _FENCE.match(line)
        begins = at == 0 or not lines[at - 1].strip()
        if marked:
            outline = marked[1]
            at += 1
            continue
        if fence:
            end = lines.index("```", at + 1)
            yield _block(at + 2, fence[1], lines[at + 1 : end], fence[2] or "", outline, True)
            at = end
        elif line.startswith("    ") and begins and not _LIST_ITEM.match(last):
            end = _end_of_indented(lines, at)
            yield _block(at + 1, "", [one[4:] for one in lines[at:end]], "", outline, False)
            at = end - 1
        if line.strip():
            last = line if line[:1].strip() or not _LIST_ITEM.match(last) else last
            outline = ""
        at += 1


def _end_of_indented(lines: list[str], start: int) -> int:
    end = start
    for number in range(start, len(lines)):
        if lines[number].startswith("    "):
            end = number + 1
        elif lines[number].strip():
            break
    return end


def _block(
    line: int, language: str, code: list[str], name: str, outline: str, fenced: bool
) -> Block:
    text = "".join(f"{one}\n" for one in code)
    if not language:
        language = "sh" if _PROGRAMS.search(text) else "text" if fenced else ""
        if not fenced and re.search(r"^(import|from) \w", text, re.MULTILINE):
            language = "python"
    return Block(line, language, text, name, outline, fenced)
