"""Shared by the tests of the article's forms: a store with scripted failures, a server's URL."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from strongroom.coordination import (
    StoreUnavailable,
)
from strongroom.coordination.effects import (
    CONFLICT,
    CasOutcome,
    Entry,
    LeaseTerms,
    Unknown,
)
from strongroom.coordination.stores.memory import MemoryStore
from strongroom.testing import InProcessServer


def url_of(server: InProcessServer, key: str = "") -> str:
    endpoint = quote(f"{server.url}/devstoreaccount1", safe="")
    more = f"&key={key}" if key else ""
    return f"azure://devstoreaccount1/classic?endpoint={endpoint}{more}"


class Scripted(MemoryStore):
    """A store whose writes follow a script: "lost" (applied without an answer), "never" (not
    applied).

    It can also refuse reads.
    """

    def __init__(self, *script: str) -> None:
        super().__init__()
        self.script = list(script)
        self.reads_fail = False

    def get(self, key: str, timeout_s: float) -> Entry | None:
        if self.reads_fail:
            raise StoreUnavailable("down")
        return super().get(key, timeout_s)

    def _answer(self, act: Callable[[], CasOutcome]) -> CasOutcome:
        kind = self.script.pop(0) if self.script else ""
        if kind == "down":
            raise StoreUnavailable("down")
        if kind == "lost" or kind == "lost, then down":
            act()
            self.reads_fail = kind != "lost"
            return Unknown(kind)
        return CONFLICT if kind == "never" else act()

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        done = super().cas
        return self._answer(lambda: done(key, expected, value, timeout_s, lease, note))

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        done = super().delete
        return self._answer(lambda: done(key, expected, timeout_s))
