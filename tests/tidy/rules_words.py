"""Rules about words: phrases that must not appear in the project, in code or in prose.

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
    """Return a complaint for each mark of unfinished work; missing features are on the
    compatibility page."""
    return _matches(UNFINISHED, path, text)


def machine_paths(path: PurePosixPath, text: str) -> list[str]:
    """Return a complaint for each path of a machine; paths start at the repository or are
    arguments."""
    return _matches(MACHINE_PATHS, path, text)


def registries(path: PurePosixPath, text: str) -> list[str]:
    """Return a complaint for each package registry, since each machine configures its own."""
    return _matches(REGISTRIES, path, text)


def _matches(pattern: re.Pattern[str], path: PurePosixPath, text: str) -> list[str]:
    numbered = enumerate(text.splitlines(), start=1)
    found = ((number, pattern.search(line)) for number, line in numbered)
    return [f"{path}:{number} says {match.group()!r}" for number, match in found if match]
