"""The figures of one account, from the requests that are kept in short.

Lives here: sorting requests into steps, as a pure function. Must not live here: the requests
(requests/), documents (api/figures.py).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from strongroom.auth.request import Service
from strongroom.servers.console.samples import NO_BUCKETS, STEP_S, Traffic
from strongroom.servers.telemetry import BUCKETS_S
from strongroom.values import TICKS_PER_S

_STEP_TICKS: Final = round(STEP_S * TICKS_PER_S)
_REFUSED_FROM: Final = 400
_SERVICES: Final = {service.letter: service.value for service in Service}


class TailRecord(Protocol):
    """What is needed of a request."""

    @property
    def began(self) -> int:
        """Wall time in ticks."""
        ...

    @property
    def seconds(self) -> float: ...

    @property
    def status(self) -> int: ...

    @property
    def account(self) -> str: ...

    @property
    def service(self) -> str:
        """The letter of its service; "" = none."""
        ...


class TailSamples(NamedTuple):
    """The traffic of one account.

    Attributes:
        steps: the oldest first; None where requests may have been forgotten.
        services: that of the last step, by the service's name.
    """

    steps: tuple[Traffic | None, ...]
    services: dict[str, Traffic]


def tail_samples(kept: Iterable[TailRecord], account: str, ended: int, steps: int) -> TailSamples:
    """Return the traffic of an account.

    Arguments:
        kept: the requests of all accounts, the oldest first.
        ended: when the last step ended, in ticks.
    """
    traffics: list[Traffic] = [Traffic()] * steps
    services = {name: Traffic() for name in _SERVICES.values()}
    oldest: int | None = None
    for one in kept:
        oldest = one.began if oldest is None else oldest
        step = steps - 1 - (ended - one.began) // _STEP_TICKS
        if one.account != account or not 0 <= step < steps:
            continue
        buckets = list(NO_BUCKETS)
        buckets[bisect.bisect_left(BUCKETS_S, one.seconds)] = 1
        traffic = Traffic(1, int(one.status >= _REFUSED_FROM), tuple(buckets))
        traffics[step] += traffic
        if step == steps - 1 and one.service in _SERVICES:
            services[_SERVICES[one.service]] += traffic
    known = steps if oldest is None else (ended - oldest) // _STEP_TICKS + 1
    shown = [None if steps - place > known else one for place, one in enumerate(traffics)]
    return TailSamples(tuple(shown), services)
