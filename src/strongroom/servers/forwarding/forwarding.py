"""Files over REST at every gateway: what a server among several gateways opens.

Lives here: the parts, their order, and what runs in the background. Must not live here: any step of
a request. Used by app.py:

    forwarding = Forwarding(services)                      # before the contexts are made
    contexts = service_listeners.contexts(..., forward=forwarding.answer)
    listener = forwarding.listener(contexts, shared)       # opened like every other listener,
    await forwarding.announce(host, port)                  # at `forwarding.address(settings...)`
    in_background(forwarding.run())
    closing.append(forwarding.close)
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.servers.forwarding.announcements import PROTOCOL, Announcement, encoded
from strongroom.servers.forwarding.certificate import new_certificate
from strongroom.servers.forwarding.counts import ForwardCounts
from strongroom.servers.forwarding.forwarder import Forwarder
from strongroom.servers.forwarding.peers import Peers
from strongroom.servers.forwarding.receiving import NAME, gateway_listener
from strongroom.servers.http.server import HttpServer
from strongroom.servers.service_listeners import Contexts, Shared, observer
from strongroom.services.core.runner import Services
from strongroom.services.file.copies.reading import OtherGateways
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import ShareHolds

_SWEEP_EVERY_S: Final = 1.0


class Forwarding:
    """It is made on the event loop.

    Attributes:
        counts: its metrics.
        answer: see ServiceContext.forward.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._gateways = services.store.gateways
        self._certificate = new_certificate()
        self._now = asyncio.get_running_loop().time
        self._peers = Peers(self._gateways, self._now)
        self.counts = ForwardCounts()
        forwarder = Forwarder(services, self._peers, self.counts)
        self.answer = forwarder.answer
        services.held.of(OtherGateways).open = forwarder.open_source

    def listener(self, contexts: Contexts, shared: Shared) -> HttpServer:
        """Return the listener for the other gateways, which is to be opened."""
        observe = observer(NAME, shared)
        return gateway_listener(contexts, shared, self._certificate, self.counts, observe)

    async def announce(self, host: str, port: int) -> None:
        """Tell the others where the listener is open. Raises: Unavailable, ValueError."""
        announced = Announcement(PROTOCOL, host, port, self._certificate.fingerprint)
        await self._gateways.announce(encoded(announced))

    async def run(self) -> None:
        """Close what is not needed any more, and give up shares that nobody uses, until
        cancelled."""
        opens, holds = self._services.held.of(Opens), self._services.held.of(ShareHolds)
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S)
            self._peers.sweep()
            if not self._gateways.is_alone:
                given_up = holds.release_idle(self._now(), opens.has_opens_in)
                self.counts.given_up += len(given_up)

    async def close(self) -> None:
        """Cut the connections to the others. Requests under way at them end with 503."""
        self._peers.close()
