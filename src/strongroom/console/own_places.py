"""The containers of this server that have records of the toolkit, each with its readers.

Lives here: which containers there are, and the toolkit's clients for them, which sign with the
account's key. Must not live here: who may see them (access.py), the event loop. Every method may
block, and is called on threads.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from strongroom.auth.accounts import Account
from strongroom.console.known_records import KnownRecords
from strongroom.console.record_pages import KINDS, PageOf, Waits, read_page
from strongroom.coordination import Client
from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreUnavailable
from strongroom.coordination.stores.azure.account import AzureAccount, AzureAddress
from strongroom.coordination.stores.azure.http import AzureHttp
from strongroom.coordination.stores.azure.lease import AzureLeaseStore
from strongroom.coordination.stores.connections.http_pool import NoResponse, Transport
from strongroom.servers.console.api.coordination import PlaceRecords

DEFAULT_CONTAINER: Final = "strongroom-coordination"
CONTAINERS_MAX: Final = 1000
"""So many containers of an account are looked at, in the order of their names."""
_PLACES_MAX: Final = 64
_TIMEOUT_S: Final = 2.0
_PROBE_AGAIN_S: Final = 5.0
_PROBES_MAX: Final = 20
_NAME: Final = re.compile(r"<Container><Name>([^<]*)</Name>")
_READER: Final = "console"


class RecordPlace:
    """One container: reads its records, and acts on them.

    Arguments:
        store: the container as the toolkit sees it, in lease mode, which honours both modes.
        clock: has the times that acts write; it also tells which of two reads began first.
    """

    def __init__(self, store: AzureLeaseStore, clock: Clocks) -> None:
        self._store, self._clock = store, clock
        self._reader = Client(KnownRecords(store), label=_READER, clock=clock)
        self._lock = threading.Lock()
        self._last: tuple[PageOf, Waits, float, PlaceRecords] | None = None

    def read(self, page: PageOf, waits: Waits) -> PlaceRecords:
        """Return a page of the records; see `read_page`.

        Viewers who ask at the same time share one read, which began after each of them had asked.
        """
        asked_s = self._clock.monotonic_s()
        with self._lock:
            if self._last is not None:
                last_page, last_waits, began_s, records = self._last
                if (page, waits) == (last_page, last_waits) and began_s > asked_s:
                    return records
            began_s = self._clock.monotonic_s()
            records = read_page(self._reader, page, waits)
            self._last = page, waits, began_s, records
            return records

    def actor(self, label: str) -> Client:
        """Return a client that acts; `label` is what the records will say about who did it."""
        return Client(self._store, label=label, clock=self._clock)

    def has_records(self) -> bool:
        """Return whether anything of the toolkit's is here."""
        return any(self._store.list_states(f"{kind}/", _TIMEOUT_S, 1) for kind in KINDS)


@dataclass(slots=True)
class _Containers:
    """What is known of an account's containers: those with records, and when each was tried."""

    known: set[str] = field(default_factory=set)
    tried_s: dict[str, float] = field(default_factory=dict)


class OwnPlaces:
    """The places of all accounts of this server. Thread-safe.

    Arguments:
        transport: carries requests to this server.
        is_durable: whether an acknowledged write outlives the server's process.
        clock: by whose wall time the server judges signatures.
    """

    def __init__(self, transport: Transport, is_durable: bool, clock: Clocks) -> None:
        self._transport, self._is_durable, self._clock = transport, is_durable, clock
        self._lock = threading.Lock()
        self._places: OrderedDict[tuple[str, bytes, str], RecordPlace] = OrderedDict()
        self._containers: dict[str, _Containers] = {}

    def place(self, account: Account, container: str) -> RecordPlace:
        """Return a container as a place; it need not exist."""
        key = account.name, account.keys[0], container
        with self._lock:
            place = self._places.get(key)
            if place is None:
                address = AzureAddress(self._account(account), container)
                store = AzureLeaseStore(
                    address, True, self._is_durable, self._clock, self._transport
                )
                place = self._places[key] = RecordPlace(store, self._clock)
            self._places.move_to_end(key)
            if len(self._places) > _PLACES_MAX:
                self._places.popitem(last=False)
            return place

    def containers(self, account: Account, awaited: Collection[str]) -> list[str]:
        """Return the containers of an account that have records, in the order of their names.

        A container without records is tried again after some seconds.

        Arguments:
            awaited: containers in which somebody waits.

        Raises: StoreUnavailable.
        """
        names = self._names(account)
        with self._lock:
            found = self._containers.setdefault(account.name, _Containers())
        now_s = self._clock.monotonic_s()
        due = [
            name
            for name in names
            if name not in found.known
            and found.tried_s.get(name, float("-inf")) < now_s - _PROBE_AGAIN_S
        ]
        for name in due[:_PROBES_MAX]:
            found.tried_s[name] = now_s
            if self.place(account, name).has_records():
                found.known.add(name)
        shown = found.known | {DEFAULT_CONTAINER, *awaited}
        return [name for name in names if name in shown]

    def _names(self, account: Account) -> list[str]:
        http = AzureHttp(self._account(account), self._clock, self._transport)
        query = {"comp": "list", "maxresults": str(CONTAINERS_MAX)}
        try:
            response = http.send("GET", "/", query, {}, _TIMEOUT_S)
        except NoResponse as error:
            raise StoreUnavailable(str(error)) from error
        if response.status != 200:
            raise StoreUnavailable(f"the containers cannot be listed: {response.status}")
        return _NAME.findall(response.body.decode())

    def _account(self, account: Account) -> AzureAccount:
        return AzureAccount(account.name, account.keys[0], f"http://localhost/{account.name}")
