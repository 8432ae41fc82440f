"""rclone's azureblob backend: a tree is uploaded, synchronized, checked, and downloaded
unchanged."""

from __future__ import annotations

import hashlib
import random
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_container_sas,
)

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server
from tests.interop.rclone import Rclone, with_key, with_sas

MIB = 2**20
# rclone displays control characters like this; on the disk they are unchanged.
SHOWN = str.maketrans({"\t": "␉", "\x7f": "␡"})
BIG_BYTES = 40 * MIB + 123
REMOTE = "sr:tree"
SMALL = {
    "empty": b"",
    "one": b"1",
    "docs/readme.md": b"# Strongroom\n",
    "docs/deep/er/and/deeper/still/leaf.bin": bytes(range(256)) * 40,
    "docs.d/beside a folder of nearly the same name": b"x",
    "name with spaces and  two": b"spaces",
    " leading space": b"s",
    "ünïcödé/Привет/日本語 ☃ 😀.txt": "καλημέρα".encode(),
    "decomposed e\u0301": b"two code points",
    "percent%20%2F%zz": b"percent",
    "plus+plus&and=equals;semi": b"plus",
    "hash#mark?question": b"hash",
    "quotes'\"`": b"quotes",
    "<xml>&amp;]]>": b"xml",
    "back\\slash and ends with dot.": b"back",
    "tab\tand\x7fdelete": b"control",
    "dots/...": b"dots",
    ".hidden/..almost": b"hidden",
    "(brackets)[]{}!$*,:@|^~": b"brackets",
    "n" * 200: b"long",
}


def _write(folder: Path, name: str, body: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files that are awkward in name and size."""
    folder = tmp_path / "tree"
    for name, body in SMALL.items():
        _write(folder, name, body)
    _write(folder, "big/forty megabytes", random.Random(40).randbytes(BIG_BYTES))
    return folder


@pytest.fixture
def rclone(server: Server, tmp_path: Path) -> Rclone:
    """rclone with the account's key."""
    return with_key(server, tmp_path)


@pytest.fixture
def copied(rclone: Rclone, tree: Path) -> Path:
    """The tree, after it was copied to REMOTE."""
    rclone.run("copy", str(tree), REMOTE, "--azureblob-chunk-size", "4M")
    return tree


def _sizes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }


def _shown(folder: Path) -> dict[str, int]:
    return {name.translate(SHOWN): size_bytes for name, size_bytes in _sizes(folder).items()}


def test_copy_there_and_back(rclone: Rclone, copied: Path, tmp_path: Path) -> None:
    assert rclone.files(REMOTE) == _shown(copied)
    rclone.run("check", str(copied), REMOTE)
    back = tmp_path / "back"
    rclone.run("copy", REMOTE, str(back))
    assert _sizes(back) == _sizes(copied)
    for name in _sizes(copied):
        assert (back / name).read_bytes() == (copied / name).read_bytes(), name


def test_check_finds_a_difference(rclone: Rclone, copied: Path) -> None:
    rclone.run("check", str(copied), REMOTE, "--download")
    _write(copied, "one", b"2")
    rclone.run("check", str(copied), REMOTE, "--download", code=1)
    rclone.run("check", str(copied), REMOTE, code=1)


def test_sync_follows_changes(rclone: Rclone, copied: Path) -> None:
    _write(copied, "one", b"changed, and longer")
    _write(copied, "new/file", b"new")
    _write(copied, "big/forty megabytes", random.Random(41).randbytes(BIG_BYTES - MIB))
    (copied / "empty").unlink()
    shutil.rmtree(copied / "docs")
    rclone.run("sync", str(copied), REMOTE, "--azureblob-chunk-size", "4M")
    assert rclone.files(REMOTE) == _shown(copied)
    rclone.run("check", str(copied), REMOTE, "--download")


def test_sync_has_nothing_to_do_twice(server: Server, rclone: Rclone, copied: Path) -> None:
    before = server.output().count("method=PUT")
    rclone.run("sync", str(copied), REMOTE)
    assert server.output().count("method=PUT") == before


def test_what_was_copied_survives_a_kill(server: Server, rclone: Rclone, copied: Path) -> None:
    server.kill()
    server.restart()
    rclone.run("check", str(copied), REMOTE, "--download")


def test_pages_of_a_listing(rclone: Rclone, copied: Path) -> None:
    paged = rclone.entries(REMOTE, "--azureblob-list-chunk", "3")
    assert paged == rclone.entries(REMOTE)
    assert paged["docs/deep/er"].is_dir
    assert set(rclone.entries(f"{REMOTE}/docs")) == {
        "readme.md", "deep", "deep/er", "deep/er/and", "deep/er/and/deeper",
        "deep/er/and/deeper/still", "deep/er/and/deeper/still/leaf.bin",
    }  # fmt: skip


def test_copies_on_the_server(server: Server, rclone: Rclone, copied: Path) -> None:
    """The second is larger than what is copied at once: rclone asks until it is done."""
    before = server.output().count("operation=Copy Blob")
    rclone.run("copyto", f"{REMOTE}/one", f"{REMOTE}/copies/one")
    rclone.run("copyto", f"{REMOTE}/big/forty megabytes", "sr:other/big one")
    assert server.output().count("operation=Copy Blob") >= before + 2
    assert rclone.run("cat", f"{REMOTE}/copies/one") == SMALL["one"]
    body = (copied / "big/forty megabytes").read_bytes()
    assert rclone.run("cat", "sr:other/big one") == body
    rclone.run("copy", REMOTE, "sr:third")
    rclone.run("check", REMOTE, "sr:third")
    rclone.run("moveto", f"{REMOTE}/one", f"{REMOTE}/moved")
    assert "one" not in rclone.files(REMOTE) and rclone.files(REMOTE)["moved"] == 1


def test_parts_streams_and_sums(rclone: Rclone, copied: Path) -> None:
    body = (copied / "big/forty megabytes").read_bytes()
    big = f"{REMOTE}/big/forty megabytes"
    assert rclone.run("cat", big, "--offset", "5000000", "--count", "99") == body[5000000:5000099]
    assert rclone.run("cat", big, "--tail", "7") == body[-7:]
    streamed = random.Random(42).randbytes(9 * MIB)
    rclone.run("rcat", f"{REMOTE}/streamed", "--azureblob-chunk-size", "1M", stdin=streamed)
    assert rclone.run("cat", f"{REMOTE}/streamed") == streamed
    listed = rclone.run("md5sum", f"{REMOTE}/docs").decode()
    digest = hashlib.md5(SMALL["docs/readme.md"], usedforsecurity=False).hexdigest()
    assert f"{digest}  readme.md\n" in listed


def test_times_are_kept(rclone: Rclone, copied: Path) -> None:
    rclone.run("touch", f"{REMOTE}/one", "--timestamp", "2001-02-03T04:05:06")
    assert b"2001-02-03 04:05:06" in rclone.run("lsl", f"{REMOTE}/one")


def test_delete_and_purge(rclone: Rclone, copied: Path) -> None:
    rclone.run("mkdir", "sr:kept")
    rclone.run("deletefile", f"{REMOTE}/one")
    assert "one" not in rclone.files(REMOTE)
    rclone.run("delete", f"{REMOTE}/docs")
    assert not [path for path in rclone.files(REMOTE) if path.startswith("docs/")]
    assert "docs.d/beside a folder of nearly the same name" in rclone.files(REMOTE)
    rclone.run("purge", f"{REMOTE}/big")
    assert "big/forty megabytes" not in rclone.files(REMOTE)
    rclone.run("purge", REMOTE)
    assert set(rclone.entries("sr:", "--dirs-only")) == {"kept"}
    rclone.run("rmdir", "sr:kept")
    assert rclone.entries("sr:") == {}
    rclone.run("lsjson", REMOTE, code=3)
    rclone.run("copy", str(copied), REMOTE)
    assert rclone.files(REMOTE) == _shown(copied)


def test_account_sas(server: Server, tree: Path, tmp_path: Path) -> None:
    token = generate_account_sas(
        DEVELOPMENT_ACCOUNT_NAME,
        DEVELOPMENT_ACCOUNT_KEY,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True),
        datetime.now(UTC) + timedelta(hours=1),
    )
    rclone = with_sas(f"{server.url}/{DEVELOPMENT_ACCOUNT_NAME}?{token}", tmp_path)
    rclone.run("sync", str(tree), REMOTE)
    rclone.run("check", str(tree), REMOTE, "--download")


def test_container_sas_that_may_only_read(
    server: Server, rclone: Rclone, copied: Path, tmp_path: Path
) -> None:
    token = generate_container_sas(
        DEVELOPMENT_ACCOUNT_NAME,
        "tree",
        DEVELOPMENT_ACCOUNT_KEY,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    reader = with_sas(f"{server.url}/{DEVELOPMENT_ACCOUNT_NAME}/tree?{token}", tmp_path)
    reader.run("check", str(copied), REMOTE, "--download")
    reader.run("deletefile", f"{REMOTE}/one", code=1)
    assert "one" in rclone.files(REMOTE)


def test_a_wrong_signature_is_refused(server: Server, rclone: Rclone, tmp_path: Path) -> None:
    rclone.run("mkdir", REMOTE)
    token = generate_container_sas(
        DEVELOPMENT_ACCOUNT_NAME,
        "tree",
        "d3Jvbmcga2V5",
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    forger = with_sas(f"{server.url}/{DEVELOPMENT_ACCOUNT_NAME}/tree?{token}", tmp_path)
    forger.run("lsjson", REMOTE, code=1)
    # The line is logged after the answer.
    for _ in range(100):
        if "status=403" in server.output():
            break
        time.sleep(0.1)
    assert "status=403" in server.output()
