"""The figures on the picture of the overview: those of an hour that nobody waits for.

Lives here: an hour of samples, and the figures of its end, in place of the server's own. Must not
live here: which picture is taken. All else on the pictures is what the server answers.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from playwright.sync_api import Page, Route

_SAMPLES: Final = 720
_PEAK: Final = range(430, 478)
_REFUSED: Final = range(438, 456)
_MIB: Final = 1024 * 1024
# The shares of the four services, and how much slower than Blob each is.
_SHARES: Final = {
    "blob": (0.62, 1.0),
    "queue": (0.21, 0.6),
    "table": (0.14, 0.8),
    "file": (0.03, 1.4),
}


def lively(page: Page) -> None:
    """Put the figures into what the page reads."""
    page.route("**/console/v1/history", lambda route: _answer(route, _hour))
    page.route("**/console/v1/overview", lambda route: _answer(route, _now))


def _answer(route: Route, change: Any) -> None:
    found = route.fetch()
    document = found.json()
    change(document)
    route.fulfill(response=found, body=json.dumps(document))


def _hour(document: dict[str, Any]) -> None:
    places = range(_SAMPLES)
    requests = [_requests(at) for at in places]
    document.update(
        requests_per_s=requests,
        errors_per_s=[_errors(at) for at in places],
        latency_p50_s=[0.0009 + 0.000006 * one for one in requests],
        latency_p99_s=[0.004 + 0.00009 * one + 0.001 * math.sin(one) for one in requests],
        received_bytes_per_s=[one * 21_000 for one in requests],
        sent_bytes_per_s=[one * 64_000 for one in requests],
        commits_per_s=[one * 0.4 for one in requests],
        commits_per_sync=[1 + one / 40 for one in requests],
        disk_free_bytes=[(412_000 - at) * _MIB for at in places],
        memory_bytes=[(96 + 14 * math.sin(at / 90)) * _MIB for at in places],
        connections=[18 + round(6 * math.sin(at / 41)) for at in places],
    )


def _requests(at: int) -> float:
    load = 62 + 24 * math.sin(at / 83) + 9 * math.sin(at / 13) + 4 * math.sin(at / 2.3)
    return round(load + (58 if at in _PEAK else 0), 2)


def _errors(at: int) -> float:
    return round(0.8 + 0.6 * math.sin(at / 29) + (11 if at in _REFUSED else 0), 2)


def _now(document: dict[str, Any]) -> None:
    requests, errors = _requests(_SAMPLES - 1), _errors(_SAMPLES - 1)
    for one in document["services"]:
        share, slower = _SHARES[one["name"]]
        one.update(
            requests_per_s=requests * share,
            errors_per_s=errors * share,
            latency_p50_s=0.0012 * slower,
            latency_p99_s=0.0094 * slower,
            received_bytes_per_s=requests * share * 21_000,
            sent_bytes_per_s=requests * share * 64_000,
        )
    server = document["server"]
    if server is not None:
        server.update(commits_per_s=requests * 0.4, commits_per_sync=2.6, memory_bytes=101 * _MIB)
