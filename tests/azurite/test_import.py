"""`azurite --import` on a folder in the form of Azurite: imported beside it, then served."""

from __future__ import annotations

from pathlib import Path

from strongroom.cli.exits import Exit
from tests.azurite.started import Started, ports
from tests.azurite.test_serving import client
from tests.importing.folders import PeerFolder, blob


def test_a_folder_of_azurite_is_imported_and_served(commands: Path, tmp_path: Path) -> None:
    peer = PeerFolder(tmp_path / "azurite")
    peer.blobs = [blob("one")]
    folder = peer.write()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found, flags = ports("blob")
    line = ["azurite-blob", *flags, "-l", folder]
    with Started(commands, line, tmp_path) as started:
        assert started.ended() == Exit.SETTINGS
        assert started.out == []
    assert {path for path in folder.rglob("*") if path.is_file()} == {*before}
    with Started(commands, [*line, "--import"], tmp_path) as started:
        started.wait_for("successfully listens")
        with client(found["blob"]) as blobs:
            one = blobs.get_blob_client("box", "one")
            assert one.download_blob().readall() == peer.bytes[:10]
            one.upload_blob(b"new", overwrite=True)
        assert started.stop() == 0
        assert all(text.startswith("Azurite Blob service ") for text in started.out)
    assert {path: path.read_bytes() for path in before} == before
    for again in (line, [*line, "--import"]):
        with Started(commands, again, tmp_path) as started:
            started.wait_for("successfully listens")
            with client(found["blob"]) as blobs:
                content = blobs.get_blob_client("box", "one").download_blob().readall()
                assert content == b"new"
