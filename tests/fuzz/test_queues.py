"""Requests to queues with errors in every place: targets, numbers, receipts, bodies, waits."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.testing.server import InProcessServer
from tests.effort import examples, pairs
from tests.fuzz.channel import Channel, FuzzRequest
from tests.fuzz.conftest import CREDENTIAL
from tests.fuzz.requests import HOSTILE, METHODS, hostile
from tests.fuzz.test_documents import BOMB, EXTERNAL, edited, edits

DOCUMENT = (
    b'<?xml version="1.0" encoding="utf-8"?><QueueMessage><MessageText>text &amp; more'
    b"</MessageText></QueueMessage>"
)
PARAMETERS = (
    *("visibilitytimeout", "messagettl", "numofmessages", "peekonly", "popreceipt", "comp"),
    *("restype", "prefix", "marker", "maxresults", "include", "timeout", "api-version"),
)
MESSAGE = "/fuzz-q/messages/62acfeee-e4a7-4a95-8e1f-64d411bf7143"
RECEIPT = "A" * 44
REQUESTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("GET", "/", {"comp": "list", "include": "metadata", "maxresults": "2"}),
    ("PUT", "/fuzz-q", {}),
    ("GET", "/fuzz-q", {"comp": "metadata"}),
    ("PUT", "/fuzz-q", {"comp": "acl"}),
    ("POST", "/fuzz-q/messages", {"visibilitytimeout": "0", "messagettl": "9"}),
    ("GET", "/fuzz-q/messages", {"numofmessages": "3", "visibilitytimeout": "1"}),
    ("GET", "/fuzz-q/messages", {"peekonly": "true", "numofmessages": "3"}),
    ("PUT", MESSAGE, {"popreceipt": RECEIPT, "visibilitytimeout": "0"}),
    ("DELETE", MESSAGE, {"popreceipt": RECEIPT}),
    ("DELETE", "/fuzz-q/messages", {}),
)


@pytest.fixture
def queues(server: InProcessServer) -> Iterator[Channel]:
    """A connection to the Queue service, where there is a queue."""
    made = Channel(int(server.queue_url.rpartition(":")[2]), CREDENTIAL)
    made.ask(FuzzRequest("PUT", _target("/fuzz-q")))
    yield made
    made.is_well()
    made.close()


def _target(path: str, parameters: dict[str, str] | None = None) -> str:
    pairs = "&".join(
        f"{name}={quote(value, safe='', errors='surrogatepass')}"
        for name, value in (parameters or {}).items()
    )
    return f"/{CREDENTIAL.account}{path}" + (f"?{pairs}" if pairs else "")


changes = st.dictionaries(st.sampled_from(PARAMETERS), hostile, max_size=3)
bodies = st.one_of(st.just(DOCUMENT), st.just(b""), st.builds(edited, st.just(DOCUMENT), edits))


@examples(800)
@given(
    request=st.sampled_from(REQUESTS),
    changed=changes,
    method=st.one_of(st.none(), st.none(), st.sampled_from(METHODS)),
    body=bodies,
)
def test_changed_requests(
    queues: Channel,
    request: tuple[str, str, dict[str, str]],
    changed: dict[str, str],
    method: str | None,
    body: bytes,
) -> None:
    verb, path, parameters = request
    if changed.get("timeout", "1").isdigit() and len(changed.get("timeout", "1")) > 3:
        changed = {**changed, "timeout": "1"}
    sent = b"" if (method or verb) in ("GET", "HEAD", "OPTIONS", "DELETE") else body
    queues.ask(FuzzRequest(method or verb, _target(path, {**parameters, **changed}), (), sent))


@examples(300)
@given(
    path=st.lists(st.one_of(st.just("messages"), st.just("fuzz-q"), hostile), max_size=5),
    method=st.sampled_from(METHODS),
)
def test_any_path(queues: Channel, path: list[str], method: str) -> None:
    parts = (quote(part, safe="", errors="surrogatepass") for part in path)
    queues.ask(FuzzRequest(method, _target("/" + "/".join(parts))))


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_parameter_with_each_hostile_value(queues: Channel, name: str) -> None:
    for (verb, path, parameters), value in pairs(REQUESTS, HOSTILE):
        body = DOCUMENT if verb in ("POST", "PUT") else b""
        queues.ask(FuzzRequest(verb, _target(path, {**parameters, name: value}), (), body))


def test_each_hostile_receipt_id_and_wait(queues: Channel) -> None:
    for value in HOSTILE:
        text = quote(value, safe="", errors="surrogatepass")
        for verb, path, parameters in REQUESTS[-3:-1]:
            given_id = path.rpartition("/")[0] + "/" + (text or "x")
            queues.ask(FuzzRequest(verb, _target(given_id, parameters), (), b""))
        if value.isascii() and value.isprintable() and not value.isdigit():
            wait = (("x-strongroom-wait", value),)
            queues.ask(FuzzRequest("GET", _target("/fuzz-q/messages"), wait))


@examples(500)
@given(body=st.one_of(bodies, st.binary(max_size=200)))
def test_edited_messages(queues: Channel, body: bytes) -> None:
    queues.ask(FuzzRequest("POST", _target("/fuzz-q/messages", {"messagettl": "1"}), (), body))


def test_every_prefix_of_a_message(queues: Channel) -> None:
    for end in range(len(DOCUMENT)):
        got = queues.ask(FuzzRequest("POST", _target("/fuzz-q/messages"), (), DOCUMENT[:end]))
        assert got.status == 400


def test_document_types_are_never_expanded(queues: Channel) -> None:
    bare = DOCUMENT[DOCUMENT.index(b"<Q") :]
    for prologue in (BOMB, EXTERNAL, b"<!DOCTYPE x>"):
        for entity in (b"", b"&e;", b"&m;"):
            body = prologue + bare.replace(b"text", entity)
            got = queues.ask(FuzzRequest("POST", _target("/fuzz-q/messages"), (), body))
            assert got.status == 400
