"""Damaged data directories: no blob may show the bytes of another."""

from __future__ import annotations

import os
from http.client import IncompleteRead
from pathlib import Path

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing import InProcessServer
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client, Credential

CREDENTIAL = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
_BODY_BYTES = 200_000
_BLOBS = 5


def _filled(data: Path) -> Path:
    """Make a directory with a few blobs; its one segment."""
    with InProcessServer.start(data=data) as server:
        client = Client(server.port, CREDENTIAL)
        expect(client.put("/photos?restype=container"), 201)
        for number in range(_BLOBS):
            body = b"%d" % number * _BODY_BYTES
            expect(client.put(f"/photos/{number}", PUT_BLOB, body), 201)
        client.close()
    (segment,) = (data / "segments").iterdir()
    return segment


def test_what_is_written_later_is_not_read_as_what_was_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    segment = _filled(tmp_path)
    os.truncate(segment, _BODY_BYTES)
    with InProcessServer.start(data=tmp_path) as server:
        assert "cut off" in caplog.text
        client = Client(server.port, CREDENTIAL)
        for number in range(_BLOBS):
            secret = b"s" * _BODY_BYTES
            expect(client.put(f"/photos/secret{number}", PUT_BLOB, secret), 201)
        for number in range(1, _BLOBS):
            # The length of the answer was announced, so the only possible error is an early end.
            with pytest.raises(IncompleteRead):
                client.another().get(f"/photos/{number}")
        assert expect(client.get("/photos/0"), 200).body == b"0" * _BODY_BYTES
        assert expect(client.get("/photos/secret0"), 200).body == secret
        client.close()


def test_a_file_that_is_no_segment_is_left_alone(tmp_path: Path) -> None:
    segment = _filled(tmp_path)
    stray = segment.with_name("notes.seg")
    stray.write_text("mine")
    with InProcessServer.start(data=tmp_path) as server:
        client = Client(server.port, CREDENTIAL)
        expect(client.get("/photos/1"), 200)
        client.close()
    assert stray.read_text() == "mine"
