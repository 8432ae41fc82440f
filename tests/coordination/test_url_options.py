"""Every store and bus refuses unknown options, since participants with different modes would not
meet."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from strongroom import coordination as coord
from strongroom.coordination.connect import SCHEMES
from strongroom.coordination.guards.blob import BlobGuard
from strongroom.coordination.guards.etcd import EtcdGuard
from strongroom.coordination.guards.redis import RedisGuard
from strongroom.coordination.hints import multicast
from strongroom.coordination.hints.address import address_of
from strongroom.coordination.options.url_options import (
    ANY,
    UrlOptions,
    check_options,
    query_of,
    split_hosts,
)

STORES = {
    "memory://x": ("lese=server", "lease"),
    "file://{folder}": ("snyc=0", "sync"),
    "azure://devstoreaccount1/locks": ("mdoe=lease", "mode"),
    "etcd://host:2379": ("tsl=1", "tls"),
    "postgres://host/database": ("wacth=poll", "watch"),
    "postgresql:///database?host=/tmp": ("prot=5433", "port"),
    "redis://host": ("perfix=a", "prefix"),
    "rediss://host": ("ssl_ca_cert=a", "ssl_ca_certs"),
    "s3://bucket/prefix": ("regoin=eu-west-1", "region"),
}


LONG = "a" * 64
HOSTS = [
    "etcd://{host}:2379",
    "redis://{host}",
    "rediss://:secret@{host}/0",
    "azure://account/locks?key=AAAA&endpoint=http://{host}/account",
    "s3://bucket/prefix?path=1&endpoint=https://{host}",
    "s3://bucket/prefix?path=0&endpoint=https://{host}",
]


CREDENTIALS = (
    "u:s3cret@h:99999/account/locks",
    "u:s3cret@h:0/account/locks",
    "u:s3cret@a..b/account/locks",
    "u:s3cret@h\u2100/account/locks",  # the host holds a slash after its normalization
    "u:[s3cret@h/account/locks",
    "u:s3cret/x@h/account/locks",
    "u:x/s3cret@h/account/locks",
    "u:x@s3cret@h/account/locks",
    "u:x?s3cret@h/account/locks",
    "u:x#s3cret@h/account/locks",
    "s3cret@h/?zzzz=1",
    "account/locks?key=s3cret",
    "account/locks?key=YWJj&endpoint=http://u:s3cret@h:99999/account",
    "account/locks?key=YWJj&endpoint=http://u:s3cret@h/account",
    "account/locks?key=YWJj&endpoint=u:s3cret@h",
    "account/locks?key=YWJj&endpoint=http://[s3cret@h",
    "bucket/prefix?endpoint=https://u:s3cret@h:99999&path=0",
    "bucket/prefix?endpoint=https://u:x/s3cret@h",
)
"""What may follow a scheme; "s3cret" is a part of the credentials."""
PORTS = (
    "redis://h:{port}",
    "rediss://h:{port}/1",
    "postgres://h:{port}/database",
    "postgresql://one:1,two:{port}/database",
    "postgres://h/database?port={port}",
    "etcd://one:1,two:{port}",
    "http://h:{port}/account/locks?key=YWJj",
    "https://h:{port}/account/locks?key=YWJj",
    "azure://account/locks?key=YWJj&endpoint=http://h:{port}",
    "s3://bucket/prefix?endpoint=http://h:{port}&path=0",
    "s3://bucket/prefix?endpoint=http://h:{port}&path=1",
)


def with_option(url: str, option: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{option}"


def refusal(url: str) -> str:
    with pytest.raises(coord.Unsupported) as caught:
        coord.connect(url)
    return str(caught.value)


@pytest.mark.parametrize("url", STORES)
def test_an_unknown_option_is_refused_with_the_nearest_one(url: str, tmp_path: Path) -> None:
    option, nearest = STORES[url]
    words = refusal(with_option(url.format(folder=tmp_path), option))
    name = option.partition("=")[0]
    assert f"{url.partition(':')[0]}:// knows no option '{name}'" in words
    assert f"did you mean '{nearest}'? It has: " in words


@pytest.mark.parametrize("url", STORES)
def test_the_known_options_are_listed_where_none_is_near(url: str, tmp_path: Path) -> None:
    words = refusal(with_option(url.format(folder=tmp_path), "zzzz=1"))
    assert "knows no option 'zzzz'; it has: " in words
    assert STORES[url][1] in words or "libpq's parameters" in words


@pytest.mark.parametrize("url", STORES)
def test_another_case_is_another_option(url: str, tmp_path: Path) -> None:
    known = STORES[url][1]
    words = refusal(with_option(url.format(folder=tmp_path), f"{known.title()}=1"))
    assert f"knows no option '{known.title()}'; did you mean '{known}'?" in words


@pytest.mark.parametrize("url", STORES)
def test_an_option_is_given_once_and_has_a_value(url: str, tmp_path: Path) -> None:
    plain, known = url.format(folder=tmp_path), STORES[url][1]
    twice = with_option(with_option(plain, f"{known}=1"), f"{known}=1")
    assert f"gives the option '{known}' more than once" in refusal(twice)
    if known == "prefix":
        assert coord.connect(with_option(plain, "prefix=")).promises().store == "Redis"
    else:
        assert f"the option '{known}'" in refusal(with_option(plain, f"{known}="))
        assert f"the option '{known}'" in refusal(with_option(plain, known))


@pytest.mark.parametrize(
    ("url", "option", "allowed"),
    [
        ("memory://x", "lease=client", "lease=server"),
        ("file:///tmp/x", "sync=no", "sync=0 or sync=1"),
        ("azure://devstoreaccount1/locks", "mode=Lease", "mode=etag or mode=lease"),
        ("azure://devstoreaccount1/locks", "wait=yes", "wait=0 or wait=1"),
        ("etcd://host", "tls=yes", "tls=0 or tls=1"),
        ("postgres://host/database", "watch=pull", "watch=push or watch=poll"),
        ("s3://bucket", "path=yes", "path=0 or path=1"),
    ],
)
def test_a_value_that_means_nothing_is_refused(url: str, option: str, allowed: str) -> None:
    assert f"must be {allowed}, not " in refusal(f"{url}?{option}")


def test_what_contradicts_itself_is_refused() -> None:
    assert "does not go with ca=" in refusal("etcd://host?tls=0&ca=/tmp/ca.pem")
    coord.connect("memory://of-one-kind")
    assert "already open" in refusal("memory://of-one-kind?lease=server")


@pytest.mark.parametrize(
    "url",
    [
        "azure://account/locks?key=YWJj&s3cret=1",
        "azure://account/locks?key=YWJj&s3cret",
        "azure://account/locks?sas=sv%3D1&s3cret=x&mode=etag",
        "postgres://host/database?password=a&s3cret",
        "redis://user?s3cret@host",
        "redis://user:1?s3cret@host",
        "etcd://user:1?s3cret@host",
        "azure://account/locks?key=YWJj#s3cret",
        "redis://user:1#s3cret@host",
        "azure://account/locks?key=s3cret&key=s3cret",
    ],
)
def test_what_may_be_part_of_a_secret_is_not_quoted(url: str) -> None:
    assert "s3cret" not in refusal(url)


def test_a_mistake_behind_a_key_is_named_all_the_same() -> None:
    words = refusal("azure://account/locks?key=YWJj&mdoe=lease")
    assert "knows no option 'mdoe'; did you mean 'mode'?" in words


def test_a_fragment_would_cut_options_off() -> None:
    assert "%23" in refusal("file:///tmp/a#b")
    assert "%23" in refusal("azure://account/locks?key=YWJj#&mode=lease")


def test_a_plus_sign_is_itself() -> None:
    assert query_of("azure://a/c?key=a+b%2Bc%20d") == {"key": "a+b+c d"}


def test_buses_follow_the_same_rule() -> None:
    for url, words in (
        ("memory://x?loose=0.1", "did you mean 'lose'"),
        ("azure://devstoreaccount1/locks?mdoe=lease", "did you mean 'mode'"),
        ("redis://host?Prefix=a", "did you mean 'prefix'"),
        ("postgres://host/database?perfix=a", "did you mean 'prefix'"),
        ("memory://x?lose=0.1&lose=0.2", "more than once"),
    ):
        with pytest.raises(coord.Unsupported, match=words):
            multicast(url)


def test_a_scheme_without_options_says_so() -> None:
    with pytest.raises(coord.Unsupported, match=r"x:// knows no option 'a'; it has: none"):
        check_options("x://y?a=1", {"a": "1"}, UrlOptions({}))
    check_options("x://y?a=1", {"a": "1"}, UrlOptions({"a": ANY}))


@pytest.mark.parametrize("host", ["a..b", LONG, f"{LONG}.example.net"])
@pytest.mark.parametrize("url", HOSTS)
def test_what_cannot_be_the_name_of_a_host_is_refused(
    url: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "host" in refusal(url.format(host=host))


@pytest.mark.parametrize("host", ["[::1", "a:70000", ""])
@pytest.mark.parametrize("url", HOSTS)
def test_an_endpoint_that_cannot_be_read_is_refused(
    url: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "secret" not in refusal(url.format(host=host))


@pytest.fixture
def keys_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def words_of_refusal(opened: Callable[[str], object], url: str) -> str:
    """Return all that a traceback would show of the refusal; empty if the URL is accepted."""
    try:
        opened(url)
    except coord.CoordinationError as error:
        return "".join(traceback.format_exception(error))
    return ""


@pytest.mark.usefixtures("keys_of_aws")
@pytest.mark.parametrize("rest", CREDENTIALS)
def test_no_refusal_of_any_store_or_bus_quotes_credentials(rest: str) -> None:
    """Every URL is a mistake to some of the stores, and no address to others."""
    urls = [f"{scheme}://{rest}" for scheme in SCHEMES]
    words = [words_of_refusal(opened, url) for url in urls for opened in (coord.connect, multicast)]
    assert sum(bool(one) for one in words) >= len(urls)
    assert [one for one in words if "s3cret" in one] == []


def test_the_end_of_a_key_behind_the_container_is_not_quoted() -> None:
    with pytest.raises(coord.Unsupported, match="the path of the URL is no name") as refused:
        coord.connect("azure://account/locks/s3cret==?key=abc")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("rest", CREDENTIALS)
def test_no_refusal_of_a_guard_quotes_credentials(rest: str) -> None:
    guards = ((BlobGuard, "azure"), (EtcdGuard, "etcd"), (RedisGuard, "redis"))
    words = [
        words_of_refusal(partial(guard, coord.Token("jobs", 7)), f"{scheme}://{rest}")
        for guard, scheme in guards
    ]
    assert any(words)
    assert [one for one in words if "s3cret" in one] == []


@pytest.mark.usefixtures("keys_of_aws")
@pytest.mark.parametrize("port", ["0", "65536", "99999", "-1", "x", "\u0663"])
@pytest.mark.parametrize("url", PORTS)
def test_a_port_that_cannot_be_is_refused_at_once(url: str, port: str) -> None:
    assert "from 1 to 65535" in refusal(url.format(port=port))


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_a_bus_refuses_such_a_port_too(port: str) -> None:
    with pytest.raises(coord.Unsupported, match="from 1 to 65535"):
        address_of(f"nats://h:{port}", 4222, {})


@pytest.mark.parametrize("url", ["etcd://h/{}", "postgres://{}/b", "redis://{}", "file:///{}"])
def test_bytes_that_are_no_text_are_in_no_url(url: str) -> None:
    assert refusal(url.format("\udcff")) == "the URL of the store cannot be read"


@pytest.mark.parametrize("url", ["file:locks", "file:./locks", "file:///a%00b", "file://"])
def test_a_folder_is_named_from_the_root_on(url: str) -> None:
    """Participants with other working directories would not meet."""
    assert "write file:///path/to/folder" in refusal(url)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("etcd://one,two:1,[::1]:2", ("one,two:1,[::1]:2", "")),
        ("etcd://a:b%40@[::1],two/jobs/x?tls=1", ("a:b%40@[::1],two", "/jobs/x")),
        ("postgres:///db?host=/tmp", ("", "/db")),
        ("etcd://one#part", ("one", "")),
    ],
)
def test_several_hosts_are_one_part_of_a_url(url: str, found: tuple[str, str]) -> None:
    """IPv6 addresses too, wherever they stand."""
    assert split_hosts(url) == found
