"""Files over REST at every gateway: what a server among several gateways opens.

Lives here: the parts, their order, and what runs in the background. Must not live here: any step of
a request. Used by app.py:

    forwarding = Forwarding(services, address, listening_hosts)
    contexts = service_listeners.contexts(..., forward=forwarding.answer)
    await forwarding.open(contexts, shared, open_listener)
    await forwarding.close()  # once all clients have been answered
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from strongroom.servers.forwarding.announcements import (
    PROTOCOL,
    Announcement,
    default_host,
    encoded,
)
from strongroom.servers.forwarding.certificate import new_certificate
from strongroom.servers.forwarding.counts import ForwardCounts
from strongroom.servers.forwarding.forwarder import Forwarder
from strongroom.servers.forwarding.peers import Peers
from strongroom.servers.forwarding.receiving import gateway_listener
from strongroom.servers.listener import Listener, RequestedListener
from strongroom.servers.rationed_log import Ration, more
from strongroom.servers.service_listeners import Contexts, Shared, observer
from strongroom.servers.wanted_ports import GATEWAYS
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.reading import OtherGateways
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.services.file.opens.share_leaving import ShareLeaving

_SWEEP_EVERY_S: Final = 1.0
_DRAIN_S: Final = 5.0
_FAREWELL_S: Final = 0.1
_LOG_EVERY_S: Final = 60.0
_log: Final = logging.getLogger(__name__)


OpenListener = Callable[[RequestedListener, str], Awaitable[int]]
"""open(listener, host) -> its port. Unlike listeners for clients, it is drained by `close`."""


class Forwarding:
    """It is made on the event loop.

    Arguments:
        address: where the others reach this gateway, as the operator has said. None = on a free
            port of the first of `listening_hosts` that they can connect to.

    Attributes:
        counts: its metrics.
        answer: see ServiceContext.forward.
    """

    def __init__(
        self,
        services: Services,
        address: tuple[str, int] | None,
        listening_hosts: Sequence[str],
    ) -> None:
        self._gateways = services.store.gateways
        self._address = address or (default_host(listening_hosts), 0)
        self._certificate = new_certificate()
        self._now = asyncio.get_running_loop().time
        self._peers = Peers(self._gateways, self._now)
        self._sweep: asyncio.Task[None] | None = None
        self._ration = Ration(_LOG_EVERY_S)
        self._listener: Listener | None = None
        self.counts = ForwardCounts()
        forwarder = Forwarder(services, self._peers, self.counts)
        self.answer = forwarder.answer
        services.held.of(OtherGateways).open = forwarder.open_source
        holds = services.held.of(ShareHolds)
        holds.ask = forwarder.demand
        self._leaving = ShareLeaving(holds, services.held.of(Opens))

    async def open(self, contexts: Contexts, shared: Shared, open_listener: OpenListener) -> None:
        """Listen for the other gateways, and tell them where. Raises: Unavailable, and as
        `open_listener`."""
        host, port = self._address
        observe = observer(GATEWAYS, shared)
        listener = gateway_listener(
            contexts, shared, self._certificate, self.counts, self._leaving, observe
        )
        port = await open_listener(RequestedListener(GATEWAYS, listener, port), host)
        self._listener = listener
        announced = Announcement(PROTOCOL, host, port, self._certificate.fingerprint)
        await self._gateways.announce(encoded(announced))
        shared.telemetry.add(self.counts)
        self._sweep = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Give the shares up that nobody uses, and answer what others have asked. They ask here
        as long as this server answers its own clients: until then it has the shares."""
        if self._sweep is not None:
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)
        self._leaving.release_unused()
        listener = self._listener
        if listener is not None:
            # The others learn with their next answers that their connections end. A request that
            # meets the end of its connection would have no answer.
            listener.draining = True
            await asyncio.sleep(_FAREWELL_S)
            self._leaving.release_unused()
            await listener.drain(_DRAIN_S)
        self._peers.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S)
            try:
                self._sweep_once()
            except Exception:
                # Without further sweeps, requests would wait for gateways that are dead.
                left_out = self._ration.left_out("sweep", self._now())
                if left_out is not None:
                    text = "connections and shares that are not used cannot be given up%s"
                    _log.exception(text, more(left_out))

    def _sweep_once(self) -> None:
        """Close what is not needed any more, and give up shares that nobody uses."""
        self._peers.sweep()
        if not self._gateways.is_alone:
            self.counts.given_up += len(self._leaving.release_idle(self._now()))
