"""Azure Blob Storage, Azurite or Strongroom as a store: opens one of the two modes from a URL.

Lives here: `open_url`, and the detection of the server's features. Must not live here: the modes
(azure/etag.py, azure/lease.py), credentials (azure/account.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.options.environment import variable
from strongroom.coordination.options.url_options import ANY, SWITCH, UrlOptions, check_options
from strongroom.coordination.stores.azure.account import (
    CONNECTION_STRING,
    AzureAddress,
    address_of,
    address_of_http,
)
from strongroom.coordination.stores.azure.etag import AzureStore
from strongroom.coordination.stores.azure.http import AzureHttp
from strongroom.coordination.stores.azure.lease import AzureLeaseStore
from strongroom.coordination.stores.connections.http_pool import NoResponse

_PROBE_TIMEOUT_S: Final = 1.0
_OPTIONS: Final = UrlOptions(
    {"endpoint": ANY, "key": ANY, "mode": ("etag", "lease"), "sas": ANY, "wait": SWITCH},
    secrets=frozenset({"key", "sas"}),
)
_HTTP_OPTIONS: Final = UrlOptions(
    {name: values for name, values in _OPTIONS.values.items() if name != "endpoint"},
    secrets=_OPTIONS.secrets,
)
_PUBLIC: Final = (".windows.net", ".azure.net", ".chinacloudapi.cn", ".usgovcloudapi.net")


def open_url(url: str, query: Mapping[str, str]) -> AzureStore:
    """Return the store in a container.

    A server that is not Azure's is asked once for its features.

    Arguments:
        url: azure://ACCOUNT/CONTAINER. The default account is that of the connection string in
            AZURE_STORAGE_CONNECTION_STRING, or else the development account.
        query: `mode=etag` (the default) or `mode=lease`; `key`, `sas` and `endpoint` of the
            account; `wait=1` or `wait=0`: whether the service delays responses until a change.
    """
    check_options(url, query, _OPTIONS)
    return _open(address_of(url, query, variable(CONNECTION_STRING)), query)


def open_http_url(url: str, query: Mapping[str, str]) -> AzureStore:
    """Return the store in a container of the server that an http or https URL names.

    Arguments:
        url: http://HOST:PORT/ACCOUNT/CONTAINER.
        query: as of `open_url`, without `endpoint`.
    """
    check_options(url, query, _HTTP_OPTIONS)
    return _open(address_of_http(url, query, variable(CONNECTION_STRING)), query)


def _open(address: AzureAddress, query: Mapping[str, str]) -> AzureStore:
    mode = query.get("mode", "etag")
    clock = SystemClocks()
    features = _probe(address, clock)
    long_polls = query["wait"] == "1" if "wait" in query else features.long_polls
    kind = AzureStore if mode == "etag" else AzureLeaseStore
    store = kind(address, long_polls, features.durable, clock)
    store.console_url = features.console_url
    return store


class _Features(NamedTuple):
    """What a server says of itself.

    Attributes:
        long_polls: whether it delays responses; None: unknown, a later watch shows it.
        durable: whether an acknowledged write survives its process.
        console_url: where its console is; empty if it has none.
    """

    long_polls: bool | None
    durable: bool
    console_url: str = ""


def _probe(address: AzureAddress, clock: Clocks) -> _Features:
    http = AzureHttp(address.account, clock)
    if http.pool.host.endswith(_PUBLIC):
        return _Features(False, True)
    try:
        facts = http.strongroom_health(_PROBE_TIMEOUT_S)
    except (StoreUnavailable, StoreRefused, NoResponse):
        return _Features(None, True)
    finally:
        http.pool.close()
    if facts is None:
        return _Features(False, True)
    console_url = facts.get("console")
    is_url = isinstance(console_url, str) and console_url.startswith(("http://", "https://"))
    return _Features(True, facts["durable"] is True, str(console_url) if is_url else "")
