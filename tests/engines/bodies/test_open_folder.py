"""A folder held open: what is read in it, and what is none of its files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.platform.open_folder import OpenFolder


def _make_socket(at: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(at.name)  # the whole path may be too long


def _make_link(at: Path) -> None:
    at.symlink_to("file")


@pytest.mark.parametrize("make", [os.mkfifo, _make_socket, _make_link, Path.mkdir])
def test_what_is_no_file_is_missing_and_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    """Whoever opens a pipe waits for a writer, if nothing is said against it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"content")
    make(tmp_path / "other")
    folder = OpenFolder(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="it is no file"):
        folder.reader("other")
    with folder.reader("file") as file:
        assert file.read() == b"content"
