"""Arrow's own file system, `pyarrow.fs.AzureFileSystem`, which is built on Microsoft's C++ SDK.

It first asks a container for its hierarchical namespace. It cannot move anything without one,
whoever serves it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pyarrow
import pyarrow.dataset
import pytest
from azure.storage.blob import BlobServiceClient
from pyarrow.fs import AzureFileSystem, FileSelector, FileType

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server
from tests.interop.conftest import serving

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests here."""
    with serving(tmp_path_factory.mktemp("arrow") / "data") as running:
        yield running


@pytest.fixture
def files(server: Server) -> AzureFileSystem:
    """Return the account's file system, as a program without a cache of it has it."""
    host = server.url.removeprefix("http://")
    return AzureFileSystem(
        DEVELOPMENT_ACCOUNT_NAME,
        account_key=DEVELOPMENT_ACCOUNT_KEY,
        blob_storage_authority=host,
        blob_storage_scheme="http",
        dfs_storage_authority=host,
        dfs_storage_scheme="http",
    )


@pytest.fixture
def lake(files: AzureFileSystem) -> str:
    """A new container."""
    name = f"arrow-{next(_numbers)}"
    files.create_dir(name)
    return name


def write(files: AzureFileSystem, path: str, content: bytes) -> None:
    with files.open_output_stream(path) as stream:
        stream.write(content)


def read(files: AzureFileSystem, path: str) -> bytes:
    with files.open_input_stream(path) as stream:
        return bytes(stream.read())


def kinds(files: AzureFileSystem, paths: list[str]) -> list[FileType]:
    return [one.type for one in files.get_file_info(paths)]


def below(files: AzureFileSystem, path: str) -> list[str]:
    """Return the paths of all files and directories below a path."""
    found = files.get_file_info(FileSelector(path, recursive=True))
    return sorted(one.path for one in found)


def test_directories_and_files_are_made_and_described(files: AzureFileSystem, lake: str) -> None:
    files.create_dir(f"{lake}/a/b")
    write(files, f"{lake}/a/x", b"content")
    asked = [lake, f"{lake}/a", f"{lake}/a/b", f"{lake}/a/x", f"{lake}/none", "none-such/x"]
    directory, none = FileType.Directory, FileType.NotFound
    seen = kinds(files, asked)
    assert seen == [directory, directory, directory, FileType.File, none, none]
    assert files.get_file_info(f"{lake}/a/x").size == 7
    assert below(files, lake) == [f"{lake}/a", f"{lake}/a/b", f"{lake}/a/x"]
    assert lake in [one.path for one in files.get_file_info(FileSelector(""))]
    with pytest.raises(FileNotFoundError):
        files.get_file_info(FileSelector("none-such"))


def test_streams_write_append_and_read_at_an_offset(files: AzureFileSystem, lake: str) -> None:
    content = bytes(range(256)) * 60_000  # more than one block
    path = f"{lake}/large"
    with files.open_output_stream(path, metadata={"Content-Type": "a/b", "k": "v"}) as stream:
        stream.write(content)
    with files.open_input_file(path) as file:
        file.seek(255)
        assert (bytes(file.read(3)), file.size()) == (b"\xff\x00\x01", len(content))
        assert (file.metadata()["Content-Type"], file.metadata()["k"]) == (b"a/b", b"v")
    with files.open_append_stream(path) as stream:
        stream.write(b"end")
    assert read(files, path) == content + b"end"
    write(files, path, b"short")
    assert read(files, path) == b"short"
    with pytest.raises(FileNotFoundError):
        files.open_input_stream(f"{lake}/none")


def test_files_are_copied_and_deleted(files: AzureFileSystem, lake: str) -> None:
    write(files, f"{lake}/from", b"content")
    files.copy_file(f"{lake}/from", f"{lake}/copy")
    files.delete_file(f"{lake}/from")
    assert below(files, lake) == [f"{lake}/copy"]
    assert read(files, f"{lake}/copy") == b"content"
    with pytest.raises(FileNotFoundError):
        files.delete_file(f"{lake}/from")
    # Arrow moves only where the account has a hierarchical namespace: it needs the right answer.
    with pytest.raises(NotImplementedError, match="without Hierarchical Namespace"):
        files.move(f"{lake}/copy", f"{lake}/moved")
    assert below(files, lake) == [f"{lake}/copy"]


def test_a_data_set_is_written_read_and_replaced(files: AzureFileSystem, lake: str) -> None:
    table = pyarrow.table({"k": list(range(900)), "g": ["a", "b", "c"] * 300})
    for rows in (table, table.slice(0, 30)):
        pyarrow.dataset.write_dataset(
            rows,
            f"{lake}/set",
            format="parquet",
            partitioning=["g"],
            filesystem=files,
            existing_data_behavior="delete_matching",
        )
        made = pyarrow.dataset.dataset(
            f"{lake}/set", format="parquet", partitioning=["g"], filesystem=files
        )
        assert sorted(made.to_table()["k"].to_pylist()) == rows["k"].to_pylist()
    only = made.to_table(filter=pyarrow.dataset.field("g") == "b")
    assert only["k"].to_pylist() == list(range(1, 30, 3))


def test_directories_are_deleted_with_all_that_is_in_them(
    server: Server, files: AzureFileSystem, lake: str
) -> None:
    for number in range(40):
        write(files, f"{lake}/full/{number:03}", b"x")
    write(files, f"{lake}/other", b"x")
    files.delete_dir_contents(f"{lake}/full")
    assert below(files, lake) == [f"{lake}/full", f"{lake}/other"]
    files.delete_dir(f"{lake}/full")
    assert below(files, lake) == [f"{lake}/other"]
    files.delete_dir(lake)
    account = BlobServiceClient.from_connection_string(server.connection_string)
    assert not account.get_container_client(lake).exists()
