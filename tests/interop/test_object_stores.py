"""Clients on Rust's object_store: obstore, and delta-rs, whose tables have eight writers at once.

Both delete by Blob Batch, even one blob; obstore lists from a name with `startFrom`.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest
from azure.storage.blob import ContainerClient
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import AzureStore

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server
from tests.interop.conftest import serving
from tests.interop.delta_writer import rows

if TYPE_CHECKING:
    from obstore.store import AzureConfig

_numbers = itertools.count(1)
WRITERS, APPENDS = 8, 4
_TIMEOUT_S = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests here."""
    with serving(tmp_path_factory.mktemp("stores") / "data") as running:
        yield running


@pytest.fixture
def container(server: Server) -> str:
    """A new container."""
    name = f"lake-{next(_numbers)}"
    ContainerClient.from_connection_string(server.connection_string, name).create_container()
    return name


@pytest.fixture
def options(server: Server) -> AzureConfig:
    """Return the account's options for object_store."""
    return {
        "account_name": DEVELOPMENT_ACCOUNT_NAME,
        "account_key": DEVELOPMENT_ACCOUNT_KEY,
        "endpoint": f"{server.url}/{DEVELOPMENT_ACCOUNT_NAME}",
    }


@pytest.fixture
def store(container: str, options: AzureConfig) -> AzureStore:
    return AzureStore(container, config=options, client_options={"allow_http": True})


def paths(store: AzureStore, **more: Any) -> list[str]:
    """Return the paths that obstore lists."""
    return [row["path"] for page in store.list(**more) for row in page]


def batches(server: Server) -> int:
    """Return how many batches the server has run."""
    return server.output().count("status=202 operation=Blob Batch (container) ")


def test_many_blobs_and_one_are_deleted_by_batches(server: Server, store: AzureStore) -> None:
    before = batches(server)
    found = [f"many/{number:03} ü+%20" for number in range(300)]
    for path in found:
        store.put(path, b"x")
    store.delete(found[:299])
    assert paths(store) == found[299:]
    store.delete(found[299])
    assert paths(store) == []
    assert batches(server) - before == 3


def test_what_is_not_there_is_no_failure_of_the_others(store: AzureStore) -> None:
    store.put("a", b"x")
    store.put("b", b"x")
    with pytest.raises(FileNotFoundError):
        store.delete(["a", "none", "b"])
    assert paths(store) == []


def test_a_list_begins_behind_a_name(server: Server, store: AzureStore) -> None:
    for path in ("a/1", "a/2", "a/3", "b/1"):
        store.put(path, b"x")
    assert paths(store, offset="a/2") == ["a/3", "b/1"]
    assert paths(store, prefix="a", offset="a/10") == ["a/2", "a/3"]
    assert paths(store, offset="z") == []
    assert "startFrom=" in server.output()


def test_blobs_are_copied_and_renamed(store: AzureStore) -> None:
    store.put("from", b"content")
    store.copy("from", "copy")
    store.rename("copy", "moved")
    assert paths(store) == ["from", "moved"]
    with pytest.raises(AlreadyExistsError):
        store.copy("from", "moved", overwrite=False)
    store.put("from", b"new")
    store.rename("from", "moved")
    assert paths(store) == ["moved"]
    assert bytes(store.get("moved").bytes()) == b"new"


def test_large_blobs_conditions_and_folders(store: AzureStore) -> None:
    content = bytes(range(256)) * 50_000
    made = store.put("dir/large", content, chunk_size=5 * 1024 * 1024, use_multipart=True)
    assert bytes(store.get("dir/large").bytes()) == content
    assert bytes(store.get_range("dir/large", start=255, end=258)) == b"\xff\x00\x01"
    with pytest.raises(AlreadyExistsError):
        store.put("dir/large", b"x", mode="create")
    with pytest.raises(PreconditionError):
        store.put("dir/large", b"x", mode={"e_tag": '"0x1"'})
    store.put("dir/large", b"x", mode={"e_tag": made["e_tag"] or ""})
    listed = store.list_with_delimiter()
    assert (list(listed["common_prefixes"]), list(listed["objects"])) == (["dir"], [])


def test_eight_processes_append_to_one_delta_table(
    server: Server, container: str, options: AzureConfig
) -> None:
    url, given = f"az://{container}/table", {**cast(dict[str, str], options), "allow_http": "true"}
    write_deltalake(url, rows(-1, 0), storage_options=given)
    command = [sys.executable, "-m", "tests.interop.delta_writer", url]
    writers = [
        subprocess.Popen(
            [*command, str(number), str(APPENDS)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for number in range(WRITERS)
    ]
    try:
        said = [one.communicate(json.dumps(given).encode(), _TIMEOUT_S)[1] for one in writers]
    finally:
        for one in writers:
            one.kill()
            one.wait()
    assert [one.returncode for one in writers] == [0] * WRITERS, said
    table = DeltaTable(url, storage_options=given)
    versions = WRITERS * APPENDS
    assert table.version() == versions
    assert [one["version"] for one in table.history()] == list(range(versions, -1, -1))
    assert written(table) == {-1: 1} | dict.fromkeys(range(WRITERS), APPENDS)

    table.optimize.compact()
    before = batches(server)
    gone = table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert len(gone) == versions + 1
    assert batches(server) > before
    again = DeltaTable(url, storage_options=given)
    assert len(again.file_uris()) == 1
    assert written(again) == written(table) == {-1: 1} | dict.fromkeys(range(WRITERS), APPENDS)


def written(table: DeltaTable) -> dict[int, int]:
    """Return how many rows each writer has in the table."""
    select = "select writer, count(distinct step) as steps, count(*) as rows from t group by writer"
    found = QueryBuilder().register("t", table).execute(select).read_all()
    writer, steps, counts = (column.to_pylist() for column in found.columns)
    assert steps == counts
    return dict(zip(writer, counts, strict=True))
