"""Azure Blob Storage as a store, in both modes, against a real server of this project."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import quote

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.effects import (
    UNCHANGED,
    Applied,
    CasOutcome,
    Conflict,
    Entry,
    LeaseAction,
    LeaseTerms,
    Unknown,
)
from strongroom.coordination.stores.azure.account import (
    DEVELOPMENT_KEY,
    AzureAccount,
    AzureAddress,
    address_of,
)
from strongroom.coordination.stores.azure.etag import AzureStore
from strongroom.coordination.stores.azure.lease import AzureLeaseStore, _Write
from strongroom.coordination.stores.azure.store import open_url
from strongroom.testing import InProcessServer
from strongroom.testing.faults import Fault, FaultRule
from strongroom.testing.ports import free_port
from tests.coordination.conformance import CASES, TIMEOUT_S, applied, entry_of, fresh_key

MODES = ("etag", "lease")
PLACEHOLDER = {"if-none-match": "*", "x-ms-meta-placeholder": "1"}
_clock = SystemClocks()


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        yield running


def url_of(server: InProcessServer, mode: str, container: str = "coordination") -> str:
    endpoint = quote(f"{server.url}/devstoreaccount1", safe="")
    return f"azure://devstoreaccount1/{container}?mode={mode}&endpoint={endpoint}"


def lease_store(server: InProcessServer) -> AzureLeaseStore:
    store = coord.open_store(url_of(server, "lease"))
    assert isinstance(store, AzureLeaseStore)
    return store


def terms(act: LeaseAction, nonce: str) -> LeaseTerms:
    return LeaseTerms(act, 15.0, nonce)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_contract(server: InProcessServer, mode: str, case: str) -> None:
    store = coord.open_store(url_of(server, mode))
    CASES[case](store)
    store.close()


@pytest.mark.parametrize("mode", MODES)
def test_the_container_is_made_when_it_is_missed(server: InProcessServer, mode: str) -> None:
    store = coord.open_store(url_of(server, mode, f"made-{_clock.nonce()}"))
    assert store.get("lock/a", TIMEOUT_S) is None
    assert store.list_keys("lock/", TIMEOUT_S) == []
    applied(store.cas("lock/a", None, b"x", TIMEOUT_S))
    assert store.list_keys("lock/", TIMEOUT_S) == ["lock/a"]


@pytest.mark.parametrize("mode", MODES)
def test_locks_work_over_it(server: InProcessServer, mode: str) -> None:
    name = f"cycle-{_clock.nonce()}"
    fences = []
    with coord.connect(url_of(server, mode)) as client, client.sibling() as other:
        for _ in range(3):
            with client.lock(name, ttl=15, wait=5) as held:
                assert other.lock(name, ttl=15).try_acquire() is None
                fences.append(held.fence)
        with other.lock(name, ttl=15, wait=5) as held:
            fences.append(held.fence)
    assert fences == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", MODES)
def test_a_waiter_goes_as_soon_as_the_holder_leaves(server: InProcessServer, mode: str) -> None:
    name = f"wait-{_clock.nonce()}"
    went = threading.Event()

    def wait() -> None:
        other = coord.connect(url_of(server, mode))
        with other, other.lock(name, ttl=15, wait=20):
            went.set()

    with coord.connect(url_of(server, mode)) as client:
        held = client.lock(name, ttl=15).acquire()
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not went.wait(0.3)
        held.release()
        assert went.wait(15)
        waiter.join(60)


def test_an_expired_lease_is_free_by_the_servers_clock() -> None:
    with InProcessServer.start() as server:
        name = "dead"
        with coord.connect(url_of(server, "lease")) as client, client.sibling() as other:
            lost = client.lock(name, ttl=15).acquire()
            assert other.lock(name, ttl=15).try_acquire() is None
            server.clock.advance(16)
            taken = other.lock(name, ttl=15).try_acquire()
            assert taken is not None and taken.fence == lost.fence + 1
            taken.release()


def test_an_absent_key_stays_absent_while_it_is_being_leased(server: InProcessServer) -> None:
    store = lease_store(server)
    key = fresh_key()
    applied(store._put(key, PLACEHOLDER, b"", TIMEOUT_S))
    assert store.get(key, TIMEOUT_S) is None
    assert store.list_keys(key, TIMEOUT_S) == []
    assert store.watch(key, None, 0.3) is UNCHANGED
    nonce = _clock.nonce()
    applied(store.cas(key, None, b"taken", TIMEOUT_S, terms(LeaseAction.ACQUIRE, nonce)))
    assert entry_of(store, key).value == b"taken"
    assert store.list_keys(key, TIMEOUT_S) == [key]


def test_a_plain_write_replaces_a_placeholder_once(server: InProcessServer) -> None:
    store = lease_store(server)
    key = fresh_key("gate")
    applied(store._put(key, PLACEHOLDER, b"", TIMEOUT_S))
    applied(store.cas(key, None, b"x", TIMEOUT_S))
    assert isinstance(store.cas(key, None, b"y", TIMEOUT_S), Conflict)
    assert entry_of(store, key).value == b"x"


def test_a_plain_write_leaves_a_hold_as_it_is(server: InProcessServer) -> None:
    """Others queue in the record of a running hold; they name its lease, and cannot prolong it."""
    store, other = lease_store(server), lease_store(server)
    key, nonce = fresh_key(), _clock.nonce()
    version = applied(store.cas(key, None, b"mine", TIMEOUT_S, terms(LeaseAction.ACQUIRE, nonce)))
    assert isinstance(other.cas(key, version, b"blind", TIMEOUT_S), Conflict)
    assert entry_of(other, key).version == version
    queued = applied(other.cas(key, version, b"queued", TIMEOUT_S))
    assert entry_of(store, key).expires_in_s == math.inf
    assert isinstance(
        store.cas(key, version, b"x", TIMEOUT_S, terms(LeaseAction.RENEW, nonce)), Conflict
    )
    version = applied(store.cas(key, queued, b"kept", TIMEOUT_S, terms(LeaseAction.RENEW, nonce)))
    applied(store.cas(key, version, b"given", TIMEOUT_S, terms(LeaseAction.RELEASE, nonce)))
    assert entry_of(store, key)[:3:2] == (b"given", 0.0)


def test_a_renewal_that_says_nothing_new_wakes_nobody(server: InProcessServer) -> None:
    store = lease_store(server)
    key, nonce = fresh_key(), _clock.nonce()
    first, second, other = (
        f'{{"seq":{n},"value":{v}}}'.encode() for n, v in ((1, 5), (2, 5), (3, 6))
    )
    version = applied(store.cas(key, None, first, TIMEOUT_S, terms(LeaseAction.ACQUIRE, nonce)))
    assert (
        applied(store.cas(key, version, second, TIMEOUT_S, terms(LeaseAction.RENEW, nonce)))
        == version
    )
    assert entry_of(store, key).value == first
    changed = applied(store.cas(key, version, other, TIMEOUT_S, terms(LeaseAction.RENEW, nonce)))
    assert changed != version and entry_of(store, key).value == other


def test_a_break_meets_only_the_hold_that_was_seen(server: InProcessServer) -> None:
    store = lease_store(server)
    key, first, second = fresh_key(), _clock.nonce(), _clock.nonce()
    seen = applied(store.cas(key, None, b"first", TIMEOUT_S, terms(LeaseAction.ACQUIRE, first)))
    given = applied(store.cas(key, seen, b"free", TIMEOUT_S, terms(LeaseAction.RELEASE, first)))
    held = applied(store.cas(key, given, b"second", TIMEOUT_S, terms(LeaseAction.ACQUIRE, second)))
    breaking = terms(LeaseAction.BREAK, _clock.nonce())
    assert isinstance(store.cas(key, seen, b"broken", TIMEOUT_S, breaking), Conflict)
    applied(store.cas(key, held, b"kept", TIMEOUT_S, terms(LeaseAction.RENEW, second)))


def test_a_release_that_is_overtaken_was_one_all_the_same(server: InProcessServer) -> None:
    """Between the end of the lease and the tombstone the next one may take it."""
    store, other = lease_store(server), lease_store(server)
    key, first, second = fresh_key(), _clock.nonce(), _clock.nonce()
    seen = applied(store.cas(key, None, b"first", TIMEOUT_S, terms(LeaseAction.ACQUIRE, first)))
    plain, taken = store._store, []

    def overtaken(
        write: _Write, version: str | None, held: str, in_lease_mode: bool = True
    ) -> CasOutcome:
        take = terms(LeaseAction.ACQUIRE, second)
        taken.append(applied(other.cas(key, seen, b"second", TIMEOUT_S, take)))
        return plain(write, version, held, in_lease_mode)

    store._store = overtaken  # type: ignore[method-assign]  # a double
    applied(store.cas(key, seen, b"free", TIMEOUT_S, terms(LeaseAction.RELEASE, first)))
    assert entry_of(other, key)[:2] == (b"second", taken[0])
    applied(other.cas(key, taken[0], b"kept", TIMEOUT_S, terms(LeaseAction.RENEW, second)))


def test_a_release_on_an_old_version_is_no_release_yet(server: InProcessServer) -> None:
    store, other = lease_store(server), lease_store(server)
    key, nonce = fresh_key(), _clock.nonce()
    version = applied(store.cas(key, None, b"mine", TIMEOUT_S, terms(LeaseAction.ACQUIRE, nonce)))
    assert entry_of(other, key).version == version
    queued = applied(other.cas(key, version, b"queued", TIMEOUT_S))
    giving = terms(LeaseAction.RELEASE, nonce)
    assert isinstance(store.cas(key, version, b"free", TIMEOUT_S, giving), Conflict)
    applied(store.cas(key, queued, b"free", TIMEOUT_S, giving))
    assert entry_of(store, key)[:3:2] == (b"free", 0.0)


def test_a_waiter_is_woken_when_a_lease_runs_out(server: InProcessServer) -> None:
    """The end of a lease does not change the ETag, so the waiter has named the lease."""
    with InProcessServer.start() as moved:
        store = lease_store(moved)
        key = fresh_key()
        version = applied(
            store.cas(key, None, b"x", TIMEOUT_S, terms(LeaseAction.ACQUIRE, _clock.nonce()))
        )
        timer = threading.Timer(0.3, moved.clock.advance, (16,))
        timer.start()
        started_s = _clock.monotonic_s()
        seen = store.watch(key, version, 30.0)
        timer.join()
        assert isinstance(seen, Entry) and (seen.version, seen.expires_in_s) == (version, 0.0)
        assert _clock.monotonic_s() - started_s < 10


def test_a_take_on_an_old_version_leaves_no_lease_behind(server: InProcessServer) -> None:
    store = lease_store(server)
    key = fresh_key()
    old = applied(store.cas(key, None, b"1", TIMEOUT_S))
    applied(store.cas(key, old, b"2", TIMEOUT_S))
    outcome = store.cas(key, old, b"3", TIMEOUT_S, terms(LeaseAction.ACQUIRE, _clock.nonce()))
    assert isinstance(outcome, Conflict)
    assert entry_of(store, key).expires_in_s == 0.0


@pytest.mark.parametrize("ttl", [14.0, 61.0, 15.5])
def test_lease_mode_refuses_other_ttls_and_names_the_other_mode(ttl: float) -> None:
    client = coord.connect("azure://devstoreaccount1/c-1?mode=lease")
    with pytest.raises(coord.Unsupported, match=r"whole seconds from 15 to 60, .* mode=etag"):
        client.lock("x", ttl=ttl)


def test_nobody_there() -> None:
    address = AzureAddress(AzureAccount("a", b"key", "http://127.0.0.1:9/a"), "locks")
    store = AzureStore(address)
    with pytest.raises(coord.StoreUnavailable):
        store.get("lock/a", 1.0)
    with pytest.raises(coord.StoreUnavailable):
        store.cas("lock/a", None, b"x", 1.0)


def test_a_wrong_key_is_refused_and_never_shown(server: InProcessServer) -> None:
    account = AzureAccount("devstoreaccount1", b"wrong-key", f"{server.url}/devstoreaccount1")
    store = AzureStore(AzureAddress(account, "locks"))
    with pytest.raises(coord.StoreRefused, match="AuthenticationFailed") as caught:
        store.get("lock/a", TIMEOUT_S)
    assert "wrong-key" not in str(caught.value) + repr(account)


PLACES = {
    "azure://": (
        "",
        "devstoreaccount1",
        "http://127.0.0.1:10000/devstoreaccount1",
        "strongroom-coordination",
    ),
    "azure:///locks": (
        "AccountName=a;AccountKey=QQ==;EndpointSuffix=example.net",
        "a",
        "https://a.blob.example.net",
        "locks",
    ),
    "azure://a/locks": (
        "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=QQ==;BlobEndpoint=http://h:1/a/",
        "a",
        "http://h:1/a",
        "locks",
    ),
    "azure://devstoreaccount1/locks": (
        "AccountName=a;AccountKey=QQ==",
        "devstoreaccount1",
        "http://127.0.0.1:10000/devstoreaccount1",
        "locks",
    ),
    "azure:///dev": (
        "UseDevelopmentStorage=true",
        "devstoreaccount1",
        "http://127.0.0.1:10000/devstoreaccount1",
        "dev",
    ),
}


@pytest.mark.parametrize("url", PLACES)
def test_what_a_url_means(url: str) -> None:
    connection_string, name, endpoint, container = PLACES[url]
    address = address_of(url, {}, connection_string)
    assert (address.account.name, address.account.endpoint) == (name, endpoint)
    assert address.container == container


def test_a_key_in_the_url_may_have_lost_its_plus() -> None:
    address = address_of("azure://b/locks", {"key": DEVELOPMENT_KEY.replace("+", " ")}, "")
    assert address.account.endpoint == "https://b.blob.core.windows.net"
    assert address.account.key == address_of("azure://", {}, "").account.key


SAS = "sv=2022-11-02&sig=a%2Bb%3D"
SIGNED = {
    "azure://b/locks": ({"sas": f"?{SAS}"}, "", "b", "https://b.blob.core.windows.net"),
    "azure:///locks": (
        {},
        f"BlobEndpoint=https://b.example.net/;SharedAccessSignature={SAS}",
        "b",
        "https://b.example.net",
    ),
    "azure://": ({}, f"BlobEndpoint=http://h:1/c;SharedAccessSignature={SAS}", "c", "http://h:1/c"),
}


@pytest.mark.parametrize("url", SIGNED)
def test_a_shared_access_signature_stands_for_a_key(url: str) -> None:
    query, connection_string, name, endpoint = SIGNED[url]
    account = address_of(url, query, connection_string).account
    assert (account.name, account.endpoint, account.sas) == (name, endpoint, SAS)
    assert "sig=" not in repr(account)


def test_a_shared_access_signature_opens_a_container(server: InProcessServer) -> None:
    token = generate_account_sas(
        "devstoreaccount1",
        DEVELOPMENT_KEY,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True),
        datetime(2099, 1, 1, tzinfo=UTC),
    )
    for mode in MODES:
        url = f"{url_of(server, mode, f'signed-{mode}')}&sas={quote(token, safe='')}"
        with coord.connect(url) as client, client.lock("x", ttl=15) as held:
            assert held.fence == 1
    reading = quote(token.replace("sig=", "sig=A"), safe="")
    with pytest.raises(coord.StoreRefused, match="Authentication") as caught:
        coord.open_store(f"{url_of(server, 'etag')}&sas={reading}").get("lock/x", TIMEOUT_S)
    assert "sig=" not in str(caught.value)


def test_a_strongroom_says_what_it_is(server: InProcessServer) -> None:
    promises = coord.open_store(url_of(server, "etag")).promises()
    assert promises.watch == "long-poll"
    assert not promises.durable, "the server keeps everything in memory"
    forced = open_url(url_of(server, "etag").partition("&")[0], {"wait": "0"}).promises()
    assert forced.watch == "poll"


@pytest.mark.parametrize(
    "url",
    [
        "azure://somebody/locks",
        "azure://devstoreaccount1/Not--A--Container",
        "azure://b/locks?key=*",
        "azure:///locks?mode=both",
    ],
)
def test_urls_that_mean_nothing(url: str) -> None:
    with pytest.raises(coord.Unsupported):
        coord.open_store(url)


class _Hasty(BaseHTTPRequestHandler):
    """A service that answers at once whatever was asked: it has never heard of waiting."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str | None]]
    changes_at: ClassVar[int] = 0

    def do_GET(self) -> None:
        type(self).asked.append(self.headers["x-strongroom-wait"])
        if len(self.asked) == self.changes_at:
            self.send_response(200)
            self.send_header("ETag", '"2"')
        else:
            self.send_response(304)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_service_that_does_not_wait_is_read_now_and_then() -> None:
    class Handler(_Hasty):
        asked: ClassVar[list[str | None]] = []
        changes_at = 5

    port = free_port()
    hasty = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=hasty.serve_forever, args=(0.01,))
    thread.start()
    try:
        account = AzureAccount("a", b"key", f"http://127.0.0.1:{port}/a")
        store = AzureStore(AzureAddress(account, "locks"))
        assert store.promises().watch == "long-poll"
        seen = store.watch("lock/a", '"1"', 30.0)
        assert isinstance(seen, Entry) and seen.version == '"2"'
        waited = [wait is not None for wait in Handler.asked]
        assert waited == [True, True, True, False, False]
        assert store.promises().watch == "poll"
    finally:
        hasty.shutdown()
        thread.join(60)
        hasty.server_close()
        store.close()


class _Silent(_Hasty):
    """A service that takes what it is sent and never says a word."""

    changed: ClassVar[threading.Event]

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.changed.wait(60)


def test_a_write_without_an_answer_is_of_unknown_fate() -> None:
    class Handler(_Silent):
        changed: ClassVar[threading.Event] = threading.Event()

    port = free_port()
    silent = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=silent.serve_forever, args=(0.01,))
    thread.start()
    try:
        account = AzureAccount("a", b"key", f"http://127.0.0.1:{port}/a")
        store = AzureStore(AzureAddress(account, "locks"))
        assert isinstance(store.cas("lock/a", None, b"x", 0.2), Unknown)
        assert not isinstance(store.cas("lock/a", '"1"', b"x", 0.2), Applied)
    finally:
        Handler.changed.set()
        silent.shutdown()
        thread.join(60)
        silent.server_close()
        store.close()


@pytest.mark.parametrize("mode", MODES)
def test_lost_replies_cost_time_and_nothing_else(mode: str) -> None:
    with InProcessServer.start() as server:
        url = url_of(server, mode)
        with coord.connect(url) as client:
            client.lock("x", ttl=15, wait=5).acquire().release()
            rules = [
                FaultRule(operation=name, fault=Fault.LOST_REPLY, probability=0.4)
                for name in ("Put Blob", "Lease Blob*")
            ]
            server.faults.order(*rules, seed=7)
            fences = []
            for _ in range(6):
                with client.lock("x", ttl=15, wait=60) as held:
                    fences.append(held.fence)
            assert fences == sorted(set(fences))
            assert sum(count.hit for count in server.faults.counts()) > 0
