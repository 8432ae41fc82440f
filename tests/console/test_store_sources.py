"""`--coordination-store NAME=URL`: what can never be opened is refused when the server starts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.config import ConfigError
from strongroom.console.store_sources import StoreSource, store_source, store_sources
from tests.cli.command import in_process

KEY = "key=YWJj"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense://x", "known are azure, etcd, file"),
        ("azure://shop/B?" + KEY, "'B' is no name of a container"),
        ("azure://shop/locks", "no key for the account"),
        ("http://h:99999/shop/locks?" + KEY, "is no endpoint; write http"),
        ("http://h:0/shop/locks?" + KEY, "is no endpoint; write http"),
        (
            f"azure://shop/locks?{KEY}&endpoint=http://u:hidden@h:99999/s",
            "'http://h:99999/s' is no",
        ),
        ("redis://:hidden@h:99999/0", "is the port a number"),
        ("redis://:hidden@h:0/0", "a number from 1 to 65535"),
        ("redis://:hid/den@h:1/0", "is the port a number"),
        ("redis://h/jobs", "with the database's number"),
        ("redis://a..b:1/0", "cannot be the name of a host"),
        ("etcd://", "no HOST"),
        ("etcd://h:0", "etcd://[USER:PASSWORD@]HOST"),
        ("etcd://a:2379,b:70000", "member number 2"),
        ("postgres://u:hidden@h:99999/db", "a number from 1 to 65535"),
        ("postgres://u:hidden@a:5432,b:99999/db", "a number from 1 to 65535"),
        ("postgres://u:hidden@h/db?port=0", "a number from 1 to 65535"),
        ("postgres://", "names no database"),
        ("s3://", "names no bucket"),
        ("file://host/folder", "names no folder"),
        ("memory://a?hidden=1", "memory:// knows no option"),
        ("http://[::1/shop/locks", "cannot be read"),
    ],
)
def test_a_url_that_can_never_work_is_refused_in_one_line(
    url: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
    with pytest.raises(ConfigError) as refused:
        store_source(f"jobs={url}")
    text = str(refused.value)
    assert said in text
    assert text.startswith("--coordination-store jobs=URL can never be opened: ")
    assert text.endswith("(docs/coordination/stores.md has the form of each URL)")
    assert "\n" not in text
    assert not re.search("hidden@|:hidden|hid/den|YWJj", text)


@pytest.mark.parametrize(
    "url",
    [
        "memory://a",
        "file:///not/there",
        "redis://:hidden@10.0.0.5:6379/0",
        "rediss://[::1]:6379",
        "etcd://a:2379,b,[fe80::1]:2379",
        f"http://h/shop/locks?{KEY}",
        f"http://h:65535/shop?{KEY}",
    ],
)
def test_a_store_that_is_not_there_yet_may_be_named(url: str) -> None:
    assert store_source(f"jobs={url}") == StoreSource("jobs", url)


def test_reading_the_settings_makes_no_folder(tmp_path: Path) -> None:
    store_source(f"jobs=file://{tmp_path}/not/there")
    assert not (tmp_path / "not").exists()


def test_the_library_that_a_store_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if it were not installed
    store = "strongroom.coordination.stores.postgres"
    for module in (f"{store}.store", f"{store}.wire"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'strongroom\[postgres\]'"):
        store_source("jobs=postgres://u@h/db")


def test_two_stores_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two stores have the same name, 'a'"):
        store_sources(["a=memory://a", "b=memory://b", "a=memory://c"])


@pytest.mark.parametrize(
    "value", ["jobs=nonsense://u:hidden@x", "jobs=redis://:hidden@h:99999/0", "jobs"]
)
def test_the_command_ends_as_for_other_bad_flags(value: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    flags = ("--data", data, "--console-port", "0", "--coordination-store", value)
    ran = in_process("serve", *flags)
    assert ran.code == Exit.SETTINGS
    assert ran.err.startswith("strongroom: --coordination-store ")
    assert ran.err.count("\n") == 1
    assert "hidden" not in ran.err + ran.out
    assert not data.exists()
