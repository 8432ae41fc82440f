"""Azure Blob Storage, Azurite or Strongroom as a store: opens one of the two modes from a URL.

Lives here: `open_url`, and the detection of the server's features. Must not live here: the modes
(azure/etag.py, azure/lease.py), credentials (azure/account.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.options.environment import variable
from strongroom.coordination.options.url_options import ANY, SWITCH, UrlOptions, check_options
from strongroom.coordination.stores.azure.account import (
    CONNECTION_STRING,
    AzurePlace,
    place_of,
)
from strongroom.coordination.stores.azure.etag import AzureStore
from strongroom.coordination.stores.azure.http import AzureHttp
from strongroom.coordination.stores.azure.lease import AzureLeaseStore
from strongroom.coordination.stores.connections.http_pool import NoAnswer

_PROBE_TIMEOUT_S: Final = 1.0
_OPTIONS: Final = UrlOptions(
    {"endpoint": ANY, "key": ANY, "mode": ("etag", "lease"), "sas": ANY, "wait": SWITCH},
    secrets=frozenset({"key", "sas"}),
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

    Raises:
        Unsupported: the URL is not valid, an option or its value is unknown, or there is no key.
    """
    check_options(url, query, _OPTIONS)
    place = place_of(url, query, variable(CONNECTION_STRING))
    mode = query.get("mode", "etag")
    clock = SystemClocks()
    waits, durable = _asked(place, clock)
    if "wait" in query:
        waits = query["wait"] == "1"
    if mode == "etag":
        return AzureStore(place, waits, durable, clock)
    return AzureLeaseStore(place, waits, durable, clock)


def _asked(place: AzurePlace, clock: Clocks) -> tuple[bool | None, bool]:
    """Return whether the service delays responses (None: unknown), and whether it is durable.

    If the server does not respond, the first is None. A later watch then shows what it does.
    """
    http = AzureHttp(place.account, clock)
    if http.pool.host.endswith(_PUBLIC):
        return False, True
    try:
        facts = http.strongroom_health(_PROBE_TIMEOUT_S)
    except (StoreUnavailable, StoreRefused, NoAnswer):
        return None, True
    finally:
        http.pool.close()
    return (False, True) if facts is None else (True, facts["durable"] is True)
