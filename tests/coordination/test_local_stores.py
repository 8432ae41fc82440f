"""The stores without a server, memory and file, keep the stores' contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.coordination import StoreRefused, Unsupported, open_store
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
