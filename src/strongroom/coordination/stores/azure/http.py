"""Signed requests to a Blob service, each sent once.

Lives here: the headers of every request, and its signature. Must not live here: sockets
(connections/http_pool.py), the signing rules (azure/account.py), the meaning of a status
(azure/store.py).
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from typing import Final
from urllib.parse import quote, urlencode

from strongroom.coordination.clock import Clocks
from strongroom.coordination.stores.azure.account import AzureAccount
from strongroom.coordination.stores.connections.http_pool import (
    HttpPool,
    HttpResponse,
    Transport,
    endpoint_parts,
)

_VERSION: Final = "2021-12-02"
_SECONDS: Final = len("2026-11-21T08:00:00")
_DETAIL_BYTES_MAX: Final = 4096
_DETAIL_MAX: Final = 200

_quoted: Final = functools.lru_cache(1024)(quote)


def code_of(response: HttpResponse) -> str:
    """Return the error code of a response, like BlobNotFound; empty if there is none."""
    return response.header("x-ms-error-code")


def detail_of(response: HttpResponse) -> str:
    """Return why the service refuses, in its own words; empty if the body does not say so.

    `AuthenticationErrorDetail` is preferred: `Message` is the same for every refused signature.
    """
    body = response.body[:_DETAIL_BYTES_MAX].decode("utf-8", "replace")
    for name in ("AuthenticationErrorDetail", "Message"):
        found = re.search(rf"<{name}>(.*?)</{name}>", body, re.DOTALL)
        if found is not None:
            first = (html.unescape(found[1]).strip().splitlines() or [""])[0]
            return first[:_DETAIL_MAX]
    return ""


class AzureHttp:
    """Sends requests to one account.

    Arguments:
        account: the account, which signs the requests.
        clock: provides the date of requests, and measures time limits.
        transport: carries the requests; by default, connections to the account's endpoint.
    """

    def __init__(
        self, account: AzureAccount, clock: Clocks, transport: Transport | None = None
    ) -> None:
        self._account, self._clock = account, clock
        self._base = quote(endpoint_parts(account.endpoint).path.rstrip("/"))
        self.pool: Transport = transport or HttpPool(account.endpoint, clock)
        self._date = ("", "")  # the last second of the clock, and its HTTP date

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_s: float,
        body: bytes = b"",
        long_polls: bool = False,
    ) -> HttpResponse:
        """Raises like `HttpPool.send`.

        Arguments:
            path: below the account, not encoded, like /container/blob.
            query: not encoded.
            headers: all but the date, version and authorization.
            timeout_s: for connecting, sending and receiving together.
            long_polls: see `HttpPool.send`.
        """
        target = self._base + _quoted(path)
        sent = {**headers, "x-ms-date": self._http_date(), "x-ms-version": _VERSION}
        if body:
            sent["content-length"] = str(len(body))
        parts = [urlencode(query, quote_via=quote)] if query else []
        if self._account.sas:
            parts.append(self._account.sas)
        else:
            signature = self._account.authorization(method, target, query, sent)
            sent["authorization"] = signature
        sent.pop("content-length", None)
        request_target = f"{target}?{'&'.join(parts)}" if parts else target
        return self.pool.send(method, request_target, sent, body, timeout_s, long_polls)

    def _http_date(self) -> str:
        text = self._clock.wall_text()
        second, date = self._date
        if text[:_SECONDS] != second:
            date = format_datetime(datetime.fromisoformat(text), usegmt=True)
            self._date = (text[:_SECONDS], date)
        return date

    def strongroom_health(self, timeout_s: float) -> dict[str, object] | None:
        """Return the facts of Strongroom's health endpoint; None for any other service.

        Raises:
            StoreUnavailable, NoResponse: the server does not respond.
        """
        response = self.pool.send("GET", "/.strongroom/health", {}, b"", timeout_s)
        try:
            facts = json.loads(response.body)
        except ValueError:
            return None
        return facts if isinstance(facts, dict) and "durable" in facts else None
