"""Rules about words: what a text of this project may not say, in code or in prose.

Each rule takes a path and its text and returns a complaint for each breach. The patterns are
written so that they do not match themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

UNFINISHED = re.compile(r"\b(?:T[O]DO|FIX[M]E|X[X]X|HA[C]K)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.:$*-])/(?:work|root|home/[a-z]\w*|Users/\w+)/[\w.]")
REGISTRIES = re.compile(r"\b(?:files\.)?(?:pypi|pythonhosted|npm[j]s|yarn[p]kg)\.(?:org|com)\b")

TextRule = Callable[[PurePosixPath, str], list[str]]


def unfinished(path: PurePosixPath, text: str) -> list[str]:
    """Nothing that lands is unfinished; what is missing is said in the compatibility page."""
    return _matches(UNFINISHED, path, text)


def machine_paths(path: PurePosixPath, text: str) -> list[str]:
    """No text knows where it was written: every path starts at the repository or is an argument."""
    return _matches(MACHINE_PATHS, path, text)


def registries(path: PurePosixPath, text: str) -> list[str]:
    """Packages are named and pinned; where they come from is the business of the machine."""
    return _matches(REGISTRIES, path, text)


def _matches(pattern: re.Pattern[str], path: PurePosixPath, text: str) -> list[str]:
    numbered = enumerate(text.splitlines(), start=1)
    found = ((number, pattern.search(line)) for number, line in numbered)
    return [f"{path}:{number} says {match.group()!r}" for number, match in found if match]
