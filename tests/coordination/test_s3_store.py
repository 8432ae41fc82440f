"""The S3 store satisfies the contract of stores, against moto's server on loopback.

A test shows that the one winner among 32 clients depends on the conditions in the requests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from strongroom.coordination import (
    Client,
    CorruptRecord,
    StoreRefused,
    StoreUnavailable,
    Unsupported,
    open_store,
)
from strongroom.coordination.effects import Applied, Conflict, Unknown
from strongroom.coordination.stores.s3.http import (
    S3Bucket,
    S3Credentials,
    authorization,
    canonical_query,
)
from strongroom.coordination.stores.s3.store import S3Store
from strongroom.testing.ports import HOST, free_port
from tests.coordination.conformance import CASES, TIMEOUT_S, applied, fresh_key
from tests.coordination.s3_server import KEYS, OneWriteAtATime, moto, serving


@pytest.fixture(scope="module")
def application() -> OneWriteAtATime:
    return moto()


@pytest.fixture(scope="module")
def endpoint(application: OneWriteAtATime) -> Iterator[str]:
    with serving(application) as url:
        yield url


@pytest.fixture
def url(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    return f"s3://meeting-point/locks?endpoint={endpoint}"


@pytest.fixture
def store(url: str) -> Iterator[S3Store]:
    opened = open_store(url)
    assert isinstance(opened, S3Store)
    opened._http.send("PUT", None, {}, {}, b"", TIMEOUT_S)  # the bucket
    yield opened
    opened.close()


@pytest.mark.parametrize("case", CASES)
def test_contract(case: str, store: S3Store) -> None:
    CASES[case](store)


def test_32_racing_writes_have_one_winner_in_many_rounds(store: S3Store) -> None:
    with ThreadPoolExecutor(32) as pool:
        for lap in range(10):
            key = fresh_key()
            version = applied(store.cas(key, None, b"0", TIMEOUT_S)) if lap % 2 else None
            race = [pool.submit(store.cas, key, version, b"%d" % n, 30.0) for n in range(32)]
            outcomes = [run.result() for run in race]
            assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1, outcomes
            assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 31


def test_the_same_bytes_again_are_another_version(store: S3Store) -> None:
    """The ETag of an object follows from its content, but a renewal must be visible too."""
    key = fresh_key()
    first = applied(store.cas(key, None, b"same", TIMEOUT_S))
    second = applied(store.cas(key, first, b"same", TIMEOUT_S))
    assert first != second
    assert isinstance(store.cas(key, first, b"same", TIMEOUT_S), Conflict)


def test_a_lost_answer_is_unknown_and_the_write_is_there(
    store: S3Store, application: OneWriteAtATime
) -> None:
    key = fresh_key()
    application.lose_next = 1
    assert isinstance(store.cas(key, None, b"x", TIMEOUT_S), Unknown)
    entry = store.get(key, TIMEOUT_S)
    assert entry is not None and entry.value == b"x"


def test_what_is_deleted_is_absent_and_not_listed(store: S3Store) -> None:
    key, other = fresh_key(), fresh_key()
    version = applied(store.cas(key, None, b"", TIMEOUT_S))
    applied(store.cas(other, None, b"", TIMEOUT_S))
    assert {key, other} <= set(store.list_keys("lock/", TIMEOUT_S))
    applied(store.delete(key, version, TIMEOUT_S))
    assert store.get(key, TIMEOUT_S) is None
    assert key not in store.list_keys("lock/", TIMEOUT_S)
    assert other in store.list_keys("lock/", TIMEOUT_S)


def test_a_foreign_object_is_quoted(store: S3Store) -> None:
    key = fresh_key()
    store._http.send("PUT", key, {}, {}, b"somebody else's", TIMEOUT_S)
    with pytest.raises(CorruptRecord, match="somebody"):
        store.get(key, TIMEOUT_S)


def test_locks_exclude_each_other(store: S3Store) -> None:
    inside, most, fences = [0], [0], []
    guard = threading.Lock()
    clients = [Client(store).sibling() for _ in range(6)]

    def work(client: Client) -> None:
        for _ in range(2):
            with client.lock("s3", ttl=15, wait=60) as held:
                with guard:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    fences.append(held.fence)
                with guard:
                    inside[0] -= 1

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    for client in clients:
        client.driver.close()
    assert most[0] == 1
    assert len(fences) == 12 and fences == sorted(set(fences))


def test_no_server_is_unavailable_and_no_bucket_refused(url: str, store: S3Store) -> None:
    nobody = open_store(f"s3://meeting-point?endpoint=http://{HOST}:{free_port()}")
    with pytest.raises(StoreUnavailable):
        nobody.get("lock/x", 1.0)
    with pytest.raises(StoreUnavailable):
        nobody.cas("lock/x", None, b"", 1.0)
    missing = open_store(url.replace("meeting-point", "no-such-bucket"))
    with pytest.raises(StoreRefused, match="NoSuchBucket"):
        missing.get("lock/x", TIMEOUT_S)
    with pytest.raises(StoreRefused, match="NoSuchBucket"):
        missing.cas("lock/x", None, b"", TIMEOUT_S)
    missing.close()


def test_urls_that_cannot_be_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("s3://", "s3://UPPER", "s3://a", "s3://good-name?endpoint=nowhere"):
        with pytest.raises(Unsupported):
            open_store(wrong)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(Unsupported, match="AWS_SECRET_ACCESS_KEY"):
        open_store(url)


def test_where_a_bucket_is_found() -> None:
    public = S3Bucket("b-1", "", "https://s3.eu-west-1.amazonaws.com", "eu-west-1", False)
    assert public.url == "https://b-1.s3.eu-west-1.amazonaws.com"
    assert public.target("lock/a%20b") == "/lock/a%2520b"
    assert public.target(None) == "/"
    own = S3Bucket("b-1", "x/", "http://127.0.0.1:9000", "us-east-1", True)
    assert (own.url, own.target("lock/a")) == ("http://127.0.0.1:9000", "/b-1/x/lock/a")


def test_signature_of_the_published_example() -> None:
    """The example of the documentation: GET Object with a Range."""
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    credentials = S3Credentials("AKIAIOSFODNN7EXAMPLE", secret)
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "range": "bytes=0-9",
        "x-amz-content-sha256": empty,
        "x-amz-date": "20130524T000000Z",
    }
    line = authorization(credentials, "us-east-1", "GET", "/test.txt", "", headers)
    assert line.endswith("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
    assert secret not in repr(credentials)
    assert canonical_query({"prefix": "a b", "list-type": "2"}) == "list-type=2&prefix=a%20b"
