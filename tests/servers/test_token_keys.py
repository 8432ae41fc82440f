"""The sources of the issuer's keys: a file that changes, and a URL that is fetched rarely."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from strongroom.auth.bearer import parse_token
from strongroom.auth.key_set import DOCUMENT_BYTES_MAX, KeySetError
from strongroom.errors.core import INVALID_TOKEN, SERVER_BUSY, StorageError
from strongroom.servers.copies.addresses import SourceHosts
from strongroom.servers.copies.client import CopyClient
from strongroom.servers.identities.identities import ServedIdentities
from strongroom.servers.identities.roles_file import ServedRoles
from strongroom.servers.identities.token_keys import (
    FETCH_INTERVAL_MIN_S,
    FRESH_S,
    VALID_S,
    KeyFile,
    KeyUrl,
    fetch,
)
from strongroom.testing.ports import HOST, free_port
from strongroom.wire.core.http import Headers, Request
from tests.auth import tokens
from tests.auth.signing import NoBody

ROLES = ServedRoles(None)


class Published:
    """A URL of a test: its answer, the number of fetches, and the time."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked = 0
        self.now_s = 1000.0
        self.gate: asyncio.Event | None = None
        self.keys = KeyUrl(self._fetch, lambda: self.now_s)

    async def _fetch(self) -> bytes:
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_keys_of_a_url_are_read_when_they_are_first_needed() -> None:
    async def run() -> None:
        published = Published(tokens.key_set())
        assert published.keys.current() is None
        published.gate = asyncio.Event()
        many = [asyncio.create_task(published.keys.ready("RSA")) for _ in range(20)]
        await asyncio.sleep(0)
        # the request that started the fetch is cancelled; the others still get their keys
        many[0].cancel()
        published.gate.set()
        await asyncio.gather(*many, return_exceptions=True)
        found = published.keys.current()
        assert found is not None and found.find("RSA") is not None
        assert published.asked == 1
        await published.keys.ready("RSA")
        assert published.asked == 1

    asyncio.run(run())


def test_an_unknown_key_is_looked_for_once_in_a_while() -> None:
    async def run() -> None:
        published = Published(tokens.key_set())
        await published.keys.ready("RSA")
        for _ in range(5):
            await published.keys.ready("new")
        assert published.asked == 1
        published.now_s += FETCH_INTERVAL_MIN_S
        published.answer = tokens.key_set(tokens.jwk(tokens.key_for("RS256"), "new"))
        await published.keys.ready("new")
        assert published.asked == 2
        found = published.keys.current()
        assert found is not None and found.find("new") is not None and found.find("RSA") is None

    asyncio.run(run())


def test_an_old_key_set_is_read_again_beside_the_requests() -> None:
    async def run() -> None:
        published = Published(tokens.key_set())
        await published.keys.ready("RSA")
        published.now_s += FRESH_S
        published.gate = asyncio.Event()
        await published.keys.ready("RSA")  # does not wait
        await asyncio.sleep(0)
        assert published.asked == 2
        published.gate.set()
        await published.keys.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "failure", [OSError("refused"), TimeoutError(), KeySetError("bad"), b"{}", b"x" * 300_000]
)
def test_what_cannot_be_read_fails_closed(
    failure: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        published = Published(failure)
        judge = ServedIdentities(tokens.SETTINGS, published.keys, ROLES)
        await judge.ready(asking(tokens.token()))
        with pytest.raises(StorageError) as caught:
            judge.verify(parse_token(tokens.token()))
        assert caught.value.row is SERVER_BUSY
        # After a pause the URL is fetched again, and then the keys are valid.
        published.answer = tokens.key_set()
        await published.keys.ready("RSA")
        assert published.asked == 1
        published.now_s += FETCH_INTERVAL_MIN_S
        await published.keys.ready("RSA")
        judge.verify(parse_token(tokens.token()))

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert "keys cannot be read" in caplog.text


def asking(token: str) -> Request:
    headers = Headers((("Authorization", f"Bearer {token}"),))
    return Request("GET", "/a", headers, NoBody(), tls=True)


def test_old_keys_are_believed_for_a_day() -> None:
    async def run() -> None:
        published = Published(tokens.key_set())
        await published.keys.ready("RSA")
        published.answer = OSError("gone")
        published.now_s += VALID_S - 1
        await published.keys.ready("RSA")
        await asyncio.sleep(0.01)
        assert published.keys.current() is not None
        published.now_s += 1
        assert published.keys.current() is None

    asyncio.run(run())


def test_a_signature_is_remembered_until_the_keys_change() -> None:
    async def run() -> None:
        published = Published(tokens.key_set())
        judge = ServedIdentities(tokens.SETTINGS, published.keys, ROLES)
        token = parse_token(tokens.token())
        await published.keys.ready("RSA")
        judge.verify(token)
        judge.verify(token)
        # Another key has the same id now, so signatures of the old key are invalid.
        published.answer = tokens.key_set(tokens.jwk(tokens.private_key("RSA", 2), "RSA"))
        published.now_s += FRESH_S
        await published.keys.ready("other")
        with pytest.raises(StorageError) as caught:
            judge.verify(token)
        assert caught.value.row is INVALID_TOKEN

    asyncio.run(run())


@pytest.mark.parametrize(
    "kid", ["../../etc/passwd", "https://example.net/k", "'; --", "", "x" * 999]
)
def test_a_key_id_is_only_looked_up(kid: str) -> None:
    async def run() -> None:
        published = Published(tokens.key_set())
        judge = ServedIdentities(tokens.SETTINGS, published.keys, ROLES)
        text = tokens.unsigned({"alg": "RS256", "kid": kid, "jku": "https://example.net/keys"})
        await judge.ready(asking(text))
        with pytest.raises(StorageError) as caught:
            judge.verify(parse_token(text))
        assert caught.value.row is INVALID_TOKEN
        assert published.asked == 1

    asyncio.run(run())


def test_nothing_is_asked_for_what_cannot_be_believed() -> None:
    async def run() -> None:
        published = Published(tokens.key_set())
        judge = ServedIdentities(tokens.SETTINGS, published.keys, ROLES)
        plain = asking(tokens.token())
        plain.tls = False
        for request in (
            plain,
            asking("nonsense"),
            asking(tokens.unsigned({"alg": "none", "kid": "RSA"})),
            asking(tokens.unsigned({"alg": "HS256", "kid": "RSA"})),
            Request("GET", "/a", Headers(()), NoBody(), tls=True),
        ):
            await judge.ready(request)
        assert published.asked == 0

    asyncio.run(run())


def test_a_key_file_that_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(FileNotFoundError, match="no key file"):
        KeyFile(path)
    path.write_bytes(b"{}")
    with pytest.raises(KeySetError, match=r"keys\.json: the key set"):
        KeyFile(path)
    path.write_bytes(tokens.key_set())
    keys = KeyFile(path)
    found = keys.current()
    assert found is not None and found.find("RSA") is not None and keys.current() is found
    path.write_bytes(b"broken")
    assert keys.current() is found and "what it said before stays" in caplog.text
    path.write_bytes(tokens.key_set(tokens.jwk(tokens.key_for("RS256"), "next")))
    changed = keys.current()
    assert changed is not None and changed.find("next") is not None
    path.unlink()
    assert keys.current() is None


def served(body: bytes, head: str, use: Callable[[str], Coroutine[Any, Any, bytes]]) -> bytes:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async def run() -> bytes:
        port = free_port()
        async with await asyncio.start_server(answer, HOST, port):
            return await use(f"http://{HOST}:{port}/keys")

    return asyncio.run(run())


def asked(url: str) -> Coroutine[Any, Any, bytes]:
    return fetch(CopyClient(SourceHosts.parse((url.split("/")[2],))), url)


def test_a_document_is_read_within_its_bound() -> None:
    assert served(tokens.key_set(), "200 OK", asked) == tokens.key_set()
    with pytest.raises(KeySetError, match="longer than"):
        served(b"x" * (DOCUMENT_BYTES_MAX + 1), "200 OK", asked)
    for head in ("404 Not Found", f"302 Found\r\nLocation: http://{HOST}/"):
        with pytest.raises(StorageError):
            served(b"", head, asked)
