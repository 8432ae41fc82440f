"""What gateways stamp on their answers never falls: ETag, Last-Modified, x-ms-version-id.

Lives here: the comparison of each answer with all that were there before its request was sent. Must
not live here: the order of contents (registers.py).
"""

from __future__ import annotations

import threading
from email.utils import parsedate_to_datetime
from typing import Final

from tests.conformance.answer import Answer

_HEADERS: Final = ("ETag", "Last-Modified", "x-ms-version-id")
Stamps = dict[str, str]
"""By the header's name; of one header, a later one is greater."""


class RisingStamps:
    """The highest stamps of each object that an answer has shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest: dict[str, Stamps] = {}
        self.fallen: list[str] = []

    def before(self, key: str) -> Stamps:
        """Return what a request that is sent now may not go below."""
        with self._lock:
            return dict(self._highest.get(key, {}))

    def after(self, key: str, least: Stamps, answer: Answer, *, writes: bool) -> None:
        """Take note of an answer with success.

        Arguments:
            least: what `before` returned.
            writes: whether the request made a new state, whose ETag is then a new one.
        """
        with self._lock:
            highest = self._highest.setdefault(key, {})
            for name, value in _stamps(answer).items():
                before = least.get(name, "")
                is_new = writes and name != "Last-Modified"
                if value < before or (is_new and value == before):
                    self.fallen.append(f"{key}: {name} {value} after {before}")
                highest[name] = max(value, highest.get(name, ""))


def _stamps(answer: Answer) -> Stamps:
    found = {name: answer.get(name) for name in _HEADERS}
    return {name: _sortable(name, value) for name, value in found.items() if value is not None}


def _sortable(name: str, value: str) -> str:
    return parsedate_to_datetime(value).isoformat() if name == "Last-Modified" else value
