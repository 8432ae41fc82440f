"""The sentences of docstrings, comments and pages, and how many words each has.

Lives here: the splitting of a text into sentences. Must not live here: the limits (ratchets.py).
Code, tables and headings have no sentences.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from tests.tidy.sources import Source, nodes

WORDS_MAX = 25

_END = re.compile(r"(?<=[.!?])[\"')*`]*\s+(?=[\"'(*`\[]*[A-Z0-9]|[`*]+\w)")
_WORD = re.compile(r"[^\W_]")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
# `name: text` in a section such as "Arguments:", and the sections that are one line.
_ENTRY = re.compile(r"\s+[\w*`., ]{1,60}: |(?:Raises|Returns|Source|Sources): ")
_FENCE = re.compile(r"\s*```")
_COMMENT = re.compile(r"\s*#(?: |$)")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

Block = tuple[int, str]
"""A line's number, and the text of one paragraph that begins there."""


def long_sentences(where: str, blocks: Iterator[Block]) -> list[str]:
    """Return `where:line (words) beginning` of each sentence with more than WORDS_MAX words."""
    found = []
    for line, text in blocks:
        for sentence in _END.split(text):
            words = sum(1 for word in sentence.split() if _WORD.search(word))
            if words > WORDS_MAX:
                found.append(f"{where}:{line} ({words} words) {sentence[:70]}")
    return found


def of_python(source: Source) -> Iterator[Block]:
    """Yield the paragraphs of a file's docstrings, and of its comments on lines of their own."""
    for node in nodes(source):
        if isinstance(node, _DOCUMENTED) and node.body:
            yield from _docstring(node.body[0])
        if isinstance(node, ast.ClassDef | ast.Module):
            # A text after an attribute or a constant.
            for statement in node.body[1:]:
                yield from _docstring(statement)
    lines = source.text.splitlines()
    comments = [line.partition("#")[2] if _COMMENT.match(line) else "" for line in lines]
    yield from _paragraphs(comments, 1)


def of_page(text: str) -> Iterator[Block]:
    """Yield the paragraphs of a page in Markdown."""
    kept, is_code = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
            line = ""
        is_left_out = is_code or line.startswith(("#", "|", "    "))
        kept.append("" if is_left_out else line)
    yield from _paragraphs(kept, 1)


def _docstring(statement: ast.stmt) -> Iterator[Block]:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return
    text = statement.value.value
    if isinstance(text, str):
        lines = inspect.cleandoc(text).splitlines()
        yield from _paragraphs([_prose(line) for line in lines], statement.lineno)


def _prose(line: str) -> str:
    """Return a line of a docstring; "" for a line of a table or a drawing."""
    return "" if line.lstrip().startswith("|") or "   " in line.strip() else line


def _paragraphs(lines: list[str], first: int) -> Iterator[Block]:
    """Yield lines joined to paragraphs; an item of a list and an entry of a section start a new
    one."""
    start, block = first, ""
    for number, line in enumerate(lines, start=first):
        label = _ITEM.match(line) or _ENTRY.match(line)
        if block and (label or not line.strip()):
            yield start, block
            block = ""
        if label:
            line = line[label.end() :]
        if not block:
            start = number
        block = f"{block} {line.strip()}".strip()
    if block:
        yield start, block
