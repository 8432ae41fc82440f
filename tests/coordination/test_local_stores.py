"""The stores without a server, memory and file, satisfy the contract of stores."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.coordination import (
    Client,
    CorruptRecord,
    StoreRefused,
    Unsupported,
    connect,
    open_store,
)
from strongroom.coordination.store import Store
from strongroom.coordination.stores.file import FileStore
from tests.coordination.conformance import CASES

URLS: dict[str, Callable[[Path], str]] = {
    "memory": lambda _: "memory://",
    "memory-with-leases": lambda _: "memory://?lease=server",
    "file": lambda folder: f"file://{folder}/a store?sync=0",
    "file-flushed": lambda folder: f"file://{folder}/flushed",
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", URLS)
def test_contract(kind: str, case: str, tmp_path: Path) -> None:
    CASES[case](open_store(URLS[kind](tmp_path)))


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    one: Store = open_store(f"file://{tmp_path}/shared")
    other: Store = FileStore(tmp_path / "shared")
    one.cas("lock/a", None, b"x", 1.0)
    entry = other.get("lock/a", 1.0)
    assert entry is not None and entry.value == b"x"


def test_a_folder_that_is_gone_is_not_a_free_lock(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    store = FileStore(folder)
    holder, other = Client(store), Client(FileStore(folder))
    held = holder.lock("a", ttl=0.5).acquire()
    shutil.rmtree(folder)
    with pytest.raises(StoreRefused, match="locks"):
        other.lock("a", wait=0).acquire()
    assert held.lost.wait(20)
    for trouble in (lambda: store.cas("lock/a", None, b"", 1.0), lambda: store.get("lock/a", 1.0)):
        with pytest.raises(StoreRefused, match="locks"):
            trouble()


@pytest.mark.parametrize("broken", [".lock", ".versions", "lock"])
def test_a_folder_that_cannot_be_written_to_refuses(broken: str, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path = tmp_path / broken
    path.touch() if broken == "lock" else path.mkdir()
    with pytest.raises(StoreRefused, match=re.escape(broken.lstrip("."))):
        store.cas("lock/a", None, b"", 1.0)


def test_names_that_a_file_system_takes_for_one_are_refused(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.cas("lock/a", None, b"", 1.0)
    store.cas("lock/A", None, b"", 1.0)
    (tmp_path / ".LOCK").touch()  # where capital letters do not count, it is there with `.lock`
    assert store.get("lock/%C3%A9", 1.0) is None
    for trouble in (lambda: store.cas("lock/bC", None, b"", 1.0), lambda: store.get("lock/A", 1.0)):
        with pytest.raises(StoreRefused, match="without capital letters"):
            trouble()


def test_a_head_that_is_too_deep_is_corrupt(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock" / "a.entry").write_bytes(b"[" * 60_000 + b"\n")
    with pytest.raises(CorruptRecord):
        store.get("lock/a", 1.0)


def test_a_url_that_names_no_folder_is_not_quoted() -> None:
    with pytest.raises(Unsupported, match="file:///path") as raised:
        connect("file://user:s3cret@host/x")
    assert "s3cret" not in str(raised.value)


def test_memory_is_shared_by_name() -> None:
    assert open_store("memory://shared-by-name") is open_store("memory://shared-by-name")
    assert open_store("memory://") is not open_store("memory://")


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(Unsupported, match="gopher"):
        open_store("gopher://x")
    with pytest.raises(Unsupported, match="folder"):
        open_store("file://elsewhere/x")


@pytest.mark.parametrize("key", ["../x", "lock/../x", "lock/.x", "lock", "lock/a/b", "/x", "a b/x"])
def test_a_path_that_leads_out_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(StoreRefused):
        open_store(f"file://{tmp_path}").get(key, 1.0)
