"""What gateways stamp on their answers never falls: ETag, Last-Modified, x-ms-version-id.

Lives here: the comparison of each answer with all that were there before its request was sent. Must
not live here: the order of contents (registers.py).
"""

from __future__ import annotations

import threading
from email.utils import parsedate_to_datetime
from typing import Any, Final

from tests.conformance.answer import Answer

_HEADERS: Final = ("ETag", "Last-Modified", "x-ms-version-id")
Stamps = dict[str, str | float]


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
                before = least.get(name)
                is_new = writes and name != "Last-Modified"
                if before is not None and not _rises(before, value, is_new):
                    self.fallen.append(f"{key}: {name} {value} after {before}")
                if name not in highest or _rises(highest[name], value, is_new=True):
                    highest[name] = value


def _rises(before: Any, after: Any, is_new: bool) -> bool:
    """Compare two values of one header."""
    return bool(after > before if is_new else after >= before)


def _stamps(answer: Answer) -> Stamps:
    found: Stamps = {}
    for name in _HEADERS:
        value = answer.get(name)
        if value is not None:
            is_date = name == "Last-Modified"
            found[name] = parsedate_to_datetime(value).timestamp() if is_date else value
    return found
