"""The faults that the fuzz tests have found, one by one; none may come back."""

from __future__ import annotations

import pytest

from tests.conformance.client import raw
from tests.fuzz.channel import Channel, FuzzRequest, encode

PUT = (("x-ms-blob-type", "BlockBlob"),)


@pytest.mark.parametrize(
    "sent",
    [
        FuzzRequest("HEAD", "/x", (("x-a", "\x01"),)),
        FuzzRequest("HEAD", "/\x7f"),
        FuzzRequest("HEAD", "x"),
    ],
)
def test_a_malformed_head_request_is_refused_without_a_body(
    channel: Channel, sent: FuzzRequest
) -> None:
    got = channel.ask(sent)
    assert got.status == 400 and got.body == b""


def test_what_comes_after_a_head_request_is_refused_with_a_body(channel: Channel) -> None:
    first = encode(FuzzRequest("HEAD", "/x", scheme=None), channel.credential, channel.port)
    for second in (b"GE\x01 / HTTP/1.1\r\n\r\n", b"\x01\r\n\r\n", b"GET /\x7f HTTP/1.1\r\n\r\n"):
        assert raw(channel.port, first + second, end=True).endswith(b"</Error>")


@pytest.mark.parametrize("chars", [64, 5000])
def test_container_names_longer_than_any_key(channel: Channel, chars: int) -> None:
    name = "9" * chars
    for target in (f"/{channel.credential.account}/{name}/b", f"/devstoreaccount1/{name}"):
        for scheme in ("SharedKey", None):
            got = channel.ask(FuzzRequest("GET", target, scheme=scheme))
            assert 400 <= got.status < 500


@pytest.mark.parametrize("source", ["fuzz-a/" + "b" * 1900, "c" * 1900 + "/b"])
def test_copy_sources_with_names_longer_than_any_key(stocked: Channel, source: str) -> None:
    url = f"http://127.0.0.1:{stocked.port}/{stocked.credential.account}/{source}"
    target = f"/{stocked.credential.account}/fuzz-a/copy"
    got = stocked.ask(FuzzRequest("PUT", target, (("x-ms-copy-source", url),)))
    assert got.status == 404
    assert got.get("x-ms-error-code") == "CannotVerifyCopySource"


def test_a_copy_source_whose_snapshot_is_no_time(stocked: Channel) -> None:
    url = f"http://127.0.0.1:{stocked.port}/{stocked.credential.account}/fuzz-a/plain?snapshot=x"
    target = f"/{stocked.credential.account}/fuzz-a/copy"
    got = stocked.ask(FuzzRequest("PUT", target, (("x-ms-copy-source", url),)))
    assert got.status == 404
    assert got.get("x-ms-error-code") == "CannotVerifyCopySource"


@pytest.mark.parametrize("digits", [10, 400, 5000])
def test_a_timeout_longer_than_time_itself(stocked: Channel, digits: int) -> None:
    target = f"/{stocked.credential.account}/fuzz-a/plain?timeout={'9' * digits}"
    assert stocked.ask(FuzzRequest("GET", target)).status == 200
