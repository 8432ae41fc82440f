"""The common mistakes of clients: what was wrong with a refused request, in words.

Lives here: the checks, as a table of pure functions. Must not live here: which rule refused
(rules.py), variants of the string to sign (signatures.py). Each check reads the request that was
kept and the server's own text. None of them decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from strongroom.auth.sas import decode_query
from strongroom.servers.console.requests.kept import ShortRecord
from strongroom.servers.console.requests.received import has_sas
from strongroom.times import parse_iso8601, parse_rfc1123
from strongroom.values import TICKS_PER_S, iso7
from strongroom.wire.core.http import Request

RIGHTS: Final = {
    "r": "read",
    "a": "add",
    "c": "create",
    "w": "write",
    "d": "delete",
    "x": "delete a version",
    "y": "delete permanently",
    "l": "list",
    "t": "tags",
    "f": "find by tags",
    "m": "move",
    "e": "execute",
    "o": "ownership",
    "p": "process (queues), or permissions (blobs)",
    "i": "immutability",
    "u": "update",
}
_SERVICE_LETTERS: Final = {"b": "blob", "q": "queue", "t": "table", "f": "file"}
_TYPE_LETTERS: Final = {"s": "service", "c": "container", "o": "object"}
_MINUTES_S: Final = 60
_SKEW_S: Final = 15 * _MINUTES_S
_NEEDS_LETTERS: Final = re.compile(
    r"It needs sp=([a-z]+(?: or [a-z]+)*); the ([a-zA-Z ]+) grants '([a-z]*)'"
)


class Case(msgspec.Struct, frozen=True):
    """A refused request.

    Attributes:
        text: the server's words, with all elements of the answer.
    """

    record: ShortRecord
    request: Request
    text: str

    def parameter(self, name: str) -> str:
        """Return a decoded parameter of the query, "" if it was not sent."""
        pairs = decode_query(self.request.query)
        return next((value for key, value in pairs if key.lower() == name), "")


Check = Callable[[Case], str | None]


def _clock(case: Case) -> str | None:
    headers = case.request.headers
    sent = parse_rfc1123(headers.get("x-ms-date") or headers.get("date") or "")
    if sent is None or "authorization" not in headers:
        return None
    behind_s = (case.record.began - sent) / TICKS_PER_S
    if abs(behind_s) <= _SKEW_S:
        return None
    way = "behind" if behind_s > 0 else "ahead of"
    minutes = round(abs(behind_s) / _MINUTES_S)
    return f"The client's clock is {minutes} minutes {way} the server's; 15 are permitted."


def _no_date(case: Case) -> str | None:
    headers = case.request.headers
    if "must carry its time" not in case.text:
        return None
    seen = headers.get("x-ms-date") or headers.get("date")
    return None if seen else "The request has neither x-ms-date nor Date. A proxy may remove Date."


def _unknown_account(case: Case) -> str | None:
    if "has no account" not in case.text:
        return None
    return (
        f"This server has no account '{case.record.account}'. In path style the account comes "
        "first: http://HOST:PORT/ACCOUNT/..."
    )


def _other_account(case: Case) -> str | None:
    if "names the account" not in case.text:
        return None
    return "The request is signed for another account than its URL names."


def _expired(case: Case) -> str | None:
    if not has_sas(case.request):
        return None
    began, expiry = case.record.began, parse_iso8601(case.parameter("se"))
    if expiry is not None and began >= expiry:
        return (
            f"The SAS has expired: se={case.parameter('se')}, and the request came {iso7(began)}."
        )
    start = parse_iso8601(case.parameter("st"))
    if start is not None and began < start:
        return (
            f"The SAS is not valid yet: st={case.parameter('st')}, and the request came "
            f"{iso7(began)}. Leave st out, or set it some minutes back."
        )
    return None


def _policy_expired(case: Case) -> str | None:
    if "time frame" not in case.text or not case.parameter("si"):
        return None
    return f"The stored policy '{case.parameter('si')}' may hold the times that are over."


def _missing_right(case: Case) -> str | None:
    found = _NEEDS_LETTERS.search(case.text)
    if found is None:
        return None
    needed = " or ".join(
        " and ".join(f"{letter} ({RIGHTS.get(letter, '?')})" for letter in one)
        for one in found[1].split(" or ")
    )
    return f"The {found[2]} has the rights '{found[3]}'. It lacks {needed} in sp."


def _role(case: Case) -> str | None:
    found = re.search(r"It needs the role ([^;]+); this is what (.+?) lacks here", case.text)
    return None if found is None else f"Give {found[2]} the role {found[1]}: strongroom role add."


def _service(case: Case) -> str | None:
    found = re.search(r"It needs ss=([a-z]); the account SAS has ss=([a-z]*)", case.text)
    if found is None:
        return None
    name = _SERVICE_LETTERS.get(found[1], found[1])
    return f"The account SAS is not for the {name} service: add {found[1]} to ss={found[2]}."


def _resource_type(case: Case) -> str | None:
    if case.record.code != "AuthorizationResourceTypeMismatch":
        return None
    has = case.parameter("srt")
    words = ", ".join(_TYPE_LETTERS.get(one, one) for one in has) or "none"
    return f"The account SAS is for other types of resources: srt={has} ({words})."


def _address(case: Case) -> str | None:
    if case.record.code != "AuthorizationSourceIPMismatch":
        return None
    named = f"The SAS is for the addresses sip={case.parameter('sip')}."
    return f"{named} A proxy has an address of its own."


def _protocol(case: Case) -> str | None:
    if case.record.code != "AuthorizationProtocolMismatch":
        return None
    return "The SAS permits HTTPS only (spr=https), and the request came over HTTP."


def _no_policy(case: Case) -> str | None:
    if "SAS identifier cannot be found" not in case.text:
        return None
    return (
        f"The stored policy '{case.parameter('si')}' is not set on '{case.record.container}'. "
        "It was removed or renamed, or the container was made anew."
    )


def _other_resource(case: Case) -> str | None:
    if "was issued for another resource" not in case.text:
        return None
    return f"The SAS (sr={case.parameter('sr')}) was made for another resource than the URL names."


def _both_credentials(case: Case) -> str | None:
    if "authorization" not in case.request.headers or not case.parameter("sig"):
        return None
    return "The request has both Authorization and a SAS. Only Authorization was looked at."


def _anonymous(case: Case) -> str | None:
    if "authorization" in case.request.headers or case.parameter("sig"):
        return None
    return "The request has no credentials: neither Authorization nor a SAS in its URL."


def _encoded_twice(case: Case) -> str | None:
    if has_sas(case.request) and re.search(r"%(?:2[bfBF]|3[dD])", case.parameter("sig")):
        return "The value of sig is encoded twice: %25 stands where % belongs."
    return None


def _spaces(case: Case) -> str | None:
    if has_sas(case.request) and re.search(r"(?:^|&)sig=[^&]*[+ ]", case.request.query or ""):
        return "The value of sig has a bare +, which some programs read as a space: write %2B."
    return None


CHECKS: Final[tuple[Check, ...]] = (
    _clock,
    _no_date,
    _unknown_account,
    _other_account,
    _expired,
    _policy_expired,
    _missing_right,
    _role,
    _service,
    _resource_type,
    _address,
    _protocol,
    _no_policy,
    _other_resource,
    _both_credentials,
    _anonymous,
    _encoded_twice,
    _spaces,
)
"""The checks, the most likely first."""
REFUSALS_OF_ACCESS: Final = (401, 403)


def found_mistakes(case: Case) -> list[str]:
    """Return what the checks say about a request whose access was refused."""
    if case.record.status not in REFUSALS_OF_ACCESS and case.record.code != "ResourceNotFound":
        return []
    said = (check(case) for check in CHECKS)
    return [one for one in said if one is not None]
