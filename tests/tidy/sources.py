"""The project's files as the tidy rules read them. The rules live in the `rules_*` modules."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = PurePosixPath("src/strongroom")

_FOLDERS = (
    *(".ci", ".github", "benchmarks", "console", "deploy", "distributions", "docs", "examples"),
    *("src", "tests"),
)
_FOREIGN = {"__pycache__", "node_modules"}
# In a linked worktree, git's own folder is a file.
_NOT_OURS = {".coverage", ".git"}
_PICTURE_SUFFIXES = {".gif", ".png", ".webp"}
_BINARY_SUFFIXES = {*_PICTURE_SUFFIXES, ".ico", ".pyc", ".woff2", ".xz"}


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: where it lies in the repository, its text, its syntax tree."""

    path: PurePosixPath
    text: str
    tree: ast.Module

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def in_package(self) -> bool:
        """Tell whether the file is part of the package, not of its tests or examples."""
        return self.path.is_relative_to(PACKAGE)

    @property
    def module(self) -> str:
        """Return the dotted name under which the package's file is imported."""
        parts = self.path.relative_to("src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def nodes(source: Source) -> tuple[ast.AST, ...]:
    """Return every node of a file's tree; several rules look at them all."""
    return tuple(ast.walk(source.tree))


def parse(path: str, text: str) -> Source:
    """Build a `Source` from text; raises SyntaxError if it is not Python."""
    return Source(PurePosixPath(path), text, ast.parse(text))


@cache
def text_files() -> dict[PurePosixPath, str]:
    """Return the text of every file that people wrote for this project, by path."""
    return {
        PurePosixPath(path.relative_to(ROOT).as_posix()): path.read_text(encoding="utf-8")
        for path in sorted(_files())
    }


@cache
def pictures() -> frozenset[PurePosixPath]:
    """Return the paths of the pictures that pages may show."""
    found = (ROOT / "docs").rglob("*")
    return frozenset(
        PurePosixPath(path.relative_to(ROOT).as_posix())
        for path in found
        if path.suffix in _PICTURE_SUFFIXES
    )


@cache
def python_sources() -> tuple[Source, ...]:
    """Return every Python file of the project, in order of its path."""
    texts = text_files().items()
    # The trees are millions of permanent objects. Repeated garbage collections while they grow
    # would take most of the time.
    gc.disable()
    try:
        return tuple(parse(str(path), text) for path, text in texts if path.suffix == ".py")
    finally:
        gc.freeze()
        gc.enable()


@cache
def package_sources() -> tuple[Source, ...]:
    """Return every Python file of the package itself, in order of its path."""
    return tuple(source for source in python_sources() if source.in_package)


def _files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name not in _NOT_OURS)
    for folder in _FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and not _is_foreign(path):
                yield path


def _is_foreign(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    generated = any(part in _FOREIGN or part.endswith(".egg-info") for part in parts)
    return generated or path.suffix in _BINARY_SUFFIXES
