"""An etcd with users: root, `app` with the right to the locks, and one without any right."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from tests.coordination.servers import EtcdCluster

PASSWORD: Final = "s3cret/%@:,word"
ESCAPED: Final = "s3cret%2F%25%40%3A%2Cword"
TIMID: Final = ("timid", "hush-hush")
CHEAP: Final = ("--bcrypt-cost", "4")
"""Flags of etcd for which checking a password takes no time."""


def with_users(cluster: EtcdCluster) -> None:
    """Add the users and enable authentication."""
    start, end = (b64encode(text).decode() for text in (b"strongroom/", b"strongroom0"))
    rights = {"permType": "READWRITE", "key": start, "range_end": end}
    for user, password in (("root", "toor"), ("app", PASSWORD), TIMID):
        cluster.call("/v3/auth/user/add", {"name": user, "password": password})
        cluster.call("/v3/auth/role/add", {"name": user})
        cluster.call("/v3/auth/user/grant", {"user": user, "role": user})
    cluster.call("/v3/auth/role/grant", {"name": "app", "perm": rights})
    cluster.call("/v3/auth/enable", {})
