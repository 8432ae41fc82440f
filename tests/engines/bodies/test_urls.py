"""URLs of places: their one form, and what is refused."""

from __future__ import annotations

import pytest

from strongroom.engines.bodies.urls import PoolUrl, place_url, pool_of

CONF = "/etc/ceph/ceph.conf"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("file:///shared/", "file:///shared"),
        ("rados://bodies", f"rados://bodies?conf={CONF}"),
        ("rados://bodies/", f"rados://bodies?conf={CONF}"),
        (f"rados://bodies?conf={CONF}", f"rados://bodies?conf={CONF}"),
        ("rados://b.1-x?ns=one&conf=/c", "rados://b.1-x?conf=/c&ns=one"),
        (
            "rados://bodies?user=client.rooms&ns=one&conf=/a%20b/%26c",
            "rados://bodies?conf=/a%20b/%26c&ns=one&user=client.rooms",
        ),
        ("rados://bodies?user=client.admin&ns=", f"rados://bodies?conf={CONF}"),
    ],
)
def test_a_url_has_one_form_in_which_stores_keep_it(given: str, kept: str) -> None:
    assert place_url(given) == kept
    assert place_url(kept) == kept


def test_what_a_url_of_a_pool_says_is_read() -> None:
    url = "rados://bodies?conf=/a%20b&ns=one&user=client.rooms"
    assert pool_of(url) == PoolUrl("bodies", "/a b", "one", "client.rooms")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://bucket", "file:///shared"),
        ("rados://", "name of a pool"),
        ("rados://a b", "name of a pool"),
        ("rados://.mgr", "name of a pool"),
        ("rados://user:secret@bodies", "name of a pool"),
        ("rados://[x", "give a pool"),
        ("rados://bodies/x", "give a pool"),
        ("rados://bodies#x", "give a pool"),
        ("rados://bodies?conf=/a&conf=/b", "give a pool"),
        ("rados://bodies?key=secret", "key is no part"),
        ("rados://bodies?conf=ceph.conf", "whole path"),
        ("rados://bodies?conf=/a/../b", "whole path"),
        ("rados://bodies?ns=a/b", "ns"),
        ("rados://bodies?user=rooms", "client.strongroom"),
        ("rados://bodies?user=osd.1", "client.strongroom"),
        ("rados://bodies?user=client.", "client.strongroom"),
    ],
)
def test_another_url_is_refused_with_what_to_give(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refusal:
        place_url(url)
    assert "rados://POOL?conf=" in str(refusal.value)
    assert "secret" not in str(refusal.value)
