"""Which requests the console's port answers at all: one table of rules.

Lives here: the rules about Host, Origin, Sec-Fetch-* and Service-Worker, as pure functions of a
request's method, path and headers. Must not live here: credentials (viewers.py), answers
(answers.py). Other pages must not use a person's browser that is signed in: those of the internet,
of another port of this machine, of stored data. Source: RFC 9110 section 7.2 (Host), RFC 6454
section 7 (Origin), "Service Workers" section 4.1, "Fetch Metadata Request Headers" (Sec-Fetch-*).

The rules are stricter than those of own_hosts.py: there, a page of another port of this machine is
no stranger.
"""

from __future__ import annotations

import enum
import ipaddress
import re
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from strongroom.wire.core.http import Headers, Request

SERVICE_NAMES: Final = ("blob", "queue", "table", "file")
API: Final = "/.strongroom/console/"
_OWN: Final = "/.strongroom/"
_ASSETS: Final = "/assets/"
_SHOWN_CHARS: Final = 100
# A host and perhaps a port, of characters that are safe in a policy of content.
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}
_JUDGED: Final = (
    "host",
    "origin",
    "sec-fetch-site",
    "sec-fetch-mode",
    "sec-fetch-dest",
    "service-worker",
)
_OWN_SITES: Final = (None, "same-origin", "none")


class Area(enum.Enum):
    """What a path of this port is."""

    PAGE = "page"
    ASSET = "asset"
    DATA = "data"
    API = "read API"
    OWN = "own endpoint"


_DESTINATIONS: Final = {
    Area.PAGE: frozenset({"document", "empty"}),
    Area.ASSET: frozenset({"document", "empty", "script", "style", "image", "font"}),
    # Nothing that could run, or be framed. What is shown is sandboxed, and saved as a file.
    Area.DATA: frozenset({"document", "empty", "image", "audio", "video", "track", "font"}),
    Area.API: frozenset({"document", "empty"}),
    Area.OWN: frozenset({"document", "empty"}),
}


class OriginRefusal(NamedTuple):
    """Why a request is not answered.

    Attributes:
        rule: the name of the row.
    """

    rule: str
    status: int
    text: str


class FetchFacts(msgspec.Struct, frozen=True):
    """The parts of a request that the rules judge."""

    method: str
    area: Area
    scheme: str
    headers: Headers

    @property
    def host(self) -> str:
        """The Host header; "" without one."""
        return self.headers.get("host") or ""

    def get(self, name: str) -> str | None:
        """Return a header in lower case; None without it."""
        value = self.headers.get(name)
        return None if value is None else value.lower()


class ConsoleOrigin(msgspec.Struct, frozen=True):
    """The names of the console's port.

    Attributes:
        is_own: whether a host name, in lower case and no address, is one of this server.
        url: the one origin behind a proxy as browsers write it, `https://console.example.net`; None
            = the request's own.
    """

    is_own: Callable[[str], bool]
    url: str | None = None

    def refusal(self, request: Request) -> OriginRefusal | None:
        """Return why a request is not answered; None if it is."""
        asked = asked_of(request)
        for rule in RULES:
            text = rule.judge(self, asked)
            if text is not None:
                return OriginRefusal(rule.name, rule.status, text)
        return None

    def of(self, request: Request) -> str:
        """Return the origin of the page that this request belongs to, as browsers write it.

        The request must have been accepted by `refusal`.
        """
        return self._wanted(asked_of(request))

    def has_host(self, host: str) -> bool:
        """Whether this is a name or an address of the server, under any port."""
        name = host_name(host)
        if name is None:
            return False
        if self.url is not None and name == host_name(self.url.partition("://")[2]):
            return True
        return name == "localhost" or is_address(name) or self.is_own(name)

    def _wanted(self, asked: FetchFacts) -> str:
        return self.url or normal_origin(f"{asked.scheme}://{asked.host.lower()}")

    def is_foreign(self, asked: FetchFacts) -> bool:
        """Whether an Origin was sent that is not the console's own."""
        origin = asked.get("origin")
        return origin is not None and normal_origin(origin) != self._wanted(asked)


def area_of(path: str) -> Area:
    """Return what a path, as sent, is. What is nothing else is an address of the page."""
    if path.startswith(API):
        return Area.API
    if path.startswith(_OWN):
        return Area.OWN
    if path[1:].partition("/")[0] in SERVICE_NAMES:
        return Area.DATA
    return Area.ASSET if path.startswith(_ASSETS) else Area.PAGE


def asked_of(request: Request) -> FetchFacts:
    scheme = "https" if request.tls else "http"
    return FetchFacts(request.method, area_of(request.path), scheme, request.headers)


def host_name(authority: str) -> str | None:
    """Without port and brackets, in lower case; None if there is no host."""
    match = _AUTHORITY.fullmatch(authority)
    return None if match is None else match[1].lower().strip("[]").removesuffix(".")


def is_address(name: str) -> bool:
    """Whether a host is an IP literal, without brackets."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def normal_origin(origin: str) -> str:
    """Return an origin as browsers write it: without the usual port of its scheme."""
    scheme, _, authority = origin.partition("://")
    return f"{scheme}://{authority.removesuffix(_USUAL_PORTS.get(scheme, ':'))}"


def _judge_repeats(own: ConsoleOrigin, asked: FetchFacts) -> str | None:
    repeated = [name for name in _JUDGED if name in asked.headers.repeats]
    return f"The header {repeated[0]} is given more than once." if repeated else None


def _judge_host(own: ConsoleOrigin, asked: FetchFacts) -> str | None:
    if own.has_host(asked.host):
        return None
    return (
        f"{asked.host[:_SHOWN_CHARS]!r} is not a name of this server. Use an IP address or "
        "localhost, or start the server with --own-host NAME, or with --console-url behind a proxy."
    )


def _judge_origin(own: ConsoleOrigin, asked: FetchFacts) -> str | None:
    if not own.is_foreign(asked):
        return None
    shown = (asked.headers.get("origin") or "")[:_SHOWN_CHARS]
    return f"A page of {shown!r} may not use the console's port: it is not of the console."


def _judge_preflight(own: ConsoleOrigin, asked: FetchFacts) -> str | None:
    if asked.method != "OPTIONS":
        return None
    return "Preflight requests are never granted here. CORS rules count on a service's own port."


def _judge_site(own: ConsoleOrigin, asked: FetchFacts) -> str | None:
    site = asked.get("sec-fetch-site")
    if site in _OWN_SITES or _is_link(asked):
        return None
    return f"A page of another site ({site[:_SHOWN_CHARS]!r}) may only link to the console's page."


def _is_link(asked: FetchFacts) -> bool:
    """Whether a person follows a link of another site to an address of the page."""
    if asked.area is not Area.PAGE or asked.method != "GET":
        return False
    if asked.get("sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    return (asked.get("sec-fetch-mode"), asked.get("sec-fetch-dest")) == ("navigate", "document")


def _judge_service_worker(own: ConsoleOrigin, asked: FetchFacts) -> str | None:
    if asked.headers.get("service-worker") is None:
        return None
    return "Nothing on this port is the script of a service worker."


def _judge_destination(own: ConsoleOrigin, asked: FetchFacts) -> str | None:
    destination = asked.get("sec-fetch-dest")
    if destination is None or destination in _DESTINATIONS[asked.area]:
        return None
    return f"This address is no {destination[:_SHOWN_CHARS]}, and is not answered as one."


class OriginRule(NamedTuple):
    """One rule. `judge` returns why a request breaks it, as a sentence; None if it does not."""

    name: str
    status: int
    judge: Callable[[ConsoleOrigin, FetchFacts], str | None]


RULES: Final = (
    OriginRule("one value", 400, _judge_repeats),
    OriginRule("host", 421, _judge_host),
    OriginRule("origin", 403, _judge_origin),
    OriginRule("preflight", 403, _judge_preflight),
    OriginRule("site", 403, _judge_site),
    OriginRule("service worker", 403, _judge_service_worker),
    OriginRule("destination", 403, _judge_destination),
)
"""All rules, in the order in which they are tried."""
