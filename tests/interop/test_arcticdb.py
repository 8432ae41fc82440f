"""ArcticDB, a store of data frames on Microsoft's C++ SDK. It deletes by Blob Batch only."""

from __future__ import annotations

import arcticdb
import pandas as pd
import pytest
from arcticdb.version_store.library import Library
from azure.storage.blob import ContainerClient

from strongroom.testing.server import Server

CONTAINER = "arctic"


@pytest.fixture
def container(server: Server) -> ContainerClient:
    """The container of all libraries."""
    made = ContainerClient.from_connection_string(server.connection_string, CONTAINER)
    made.create_container()
    return made


@pytest.fixture
def arctic(server: Server, container: ContainerClient) -> arcticdb.Arctic:
    """Return a client of the server."""
    return arcticdb.Arctic(f"azure://Container={CONTAINER};{server.connection_string.strip(';')}")


@pytest.fixture
def library(arctic: arcticdb.Arctic) -> Library:
    return arctic.create_library("prices")


def frame(first: int, rows: int = 100) -> pd.DataFrame:
    days = pd.date_range("2026-01-01", periods=rows, freq="D")
    return pd.DataFrame({"price": range(first, first + rows)}, index=days)


def segments(container: ContainerClient) -> int:
    """Return how many blobs of a symbol's data there are."""
    return sum("/tdata/" in name for name in container.list_blob_names())


def test_frames_are_written_appended_and_read(arctic: arcticdb.Arctic, library: Library) -> None:
    library.write("a", frame(0))
    later = frame(100)
    later.index += pd.Timedelta(days=100)
    library.append("a", later)
    assert library.read("a").data["price"].tolist() == list(range(200))
    assert library.read("a", as_of=0).data["price"].tolist() == list(range(100))
    assert library.list_symbols() == ["a"]
    assert arctic.list_libraries() == ["prices"]


def test_symbols_versions_and_libraries_are_deleted(
    arctic: arcticdb.Arctic, library: Library, container: ContainerClient
) -> None:
    for first in range(3):
        library.write("a", frame(first))
    library.write("b", frame(0))
    assert segments(container) == 4
    library.prune_previous_versions("a")
    assert segments(container) == 2
    library.delete("a")
    assert (library.list_symbols(), segments(container)) == (["b"], 1)
    arctic.delete_library("prices")
    assert arctic.list_libraries() == []
    assert segments(container) == 0
