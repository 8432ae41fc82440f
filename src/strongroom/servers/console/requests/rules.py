"""The rules that refuse requests, by their numbers in docs/operations.

Lives here: which rule an error of which function belongs to, as a table. Must not live here: the
rules themselves. A row without a number names the section that has the rules for its code. A test
compares numbers, pages and headings with docs/operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import metadata
from typing import Final, NamedTuple

from strongroom.auth.request import Service
from strongroom.servers.access_log.exchanges import rule_name
from strongroom.servers.console.requests.kept import RefusalNote

_ACCESS: Final = "docs/operations/blob/access.md"
_CONDITIONS: Final = "docs/operations/blob/conditions.md"
_LEASES: Final = "docs/operations/blob/leases.md"
_REQUESTS: Final = "docs/operations/blob/requests.md"
_QUEUE: Final = "docs/operations/queue.md"
_TABLE: Final = "docs/operations/table.md"
_FILE: Final = "docs/operations/file.md"
ERRORS_PAGE: Final = "docs/errors.md"
_ADVICE: Final = "what-to-do-about-the-common-ones"
_DISTRIBUTION: Final = "strongroom"


class RuleRow(NamedTuple):
    """A rule that refuses.

    Attributes:
        code: of the error.
        holds: a part of the error's text, in lower case; "" = any text.
        number: of the rule; "" = the section has several for this code.
        page, anchor: where it stands.
        text: the rule in short.
        service: None = every service.
    """

    code: str
    holds: str
    number: str
    page: str
    anchor: str
    text: str
    service: Service | None = None


_FAILED: Final = "AuthenticationFailed"

_Row = tuple[str, str, str, str]
"""Code, part of the text, number, the rule in short."""


def _section(
    page: str, anchor: str, service: Service | None, rows: tuple[_Row, ...]
) -> tuple[RuleRow, ...]:
    return tuple(
        RuleRow(code, holds, number, page, anchor=anchor, text=text, service=service)
        for code, holds, number, text in rows
    )


RULES: Final = (
    *_section(
        _ACCESS,
        "sharedkey",
        None,
        (
            (
                _FAILED,
                "mac signature found",
                "B-SKY-02",
                "The signature in the header Authorization is that of none of the account's keys.",
            ),
            (_FAILED, "has no account", "B-SKY-03", "The server has no such account."),
            (
                _FAILED,
                "names the account",
                "B-SKY-03",
                "Authorization names another account than the URL.",
            ),
            (
                _FAILED,
                "bearer tokens are not accepted",
                "B-SKY-04",
                "This server was given no issuer of tokens.",
            ),
            (
                "InvalidAuthenticationInfo",
                "the authorization header must read",
                "B-SKY-04",
                "The header Authorization cannot be read.",
            ),
            (
                _FAILED,
                "more than 15 minutes away",
                "B-SKY-05",
                "The time of a signed request may differ by 15 minutes from the server's.",
            ),
            (
                _FAILED,
                "must carry its time",
                "B-SKY-05",
                "A signed request has its time in x-ms-date or Date.",
            ),
            (
                _FAILED,
                "is not of the form",
                "B-SKY-05",
                "The time of a signed request is in the form of RFC 1123.",
            ),
            (
                "InvalidHeaderValue",
                "given more than once",
                "B-SKY-09",
                "A signed header may be sent once.",
            ),
        ),
    ),
    *_section(
        _ACCESS,
        "sas-common-rules",
        None,
        (
            (
                _FAILED,
                "signature not valid in the specified time frame",
                "B-SAS-01",
                "A SAS holds from st until se.",
            ),
            (
                _FAILED,
                "signature did not match",
                "B-SAS-02",
                "The signature of the SAS (sig) is not that of any of the account's keys.",
            ),
            (
                _FAILED,
                "has no expiry",
                "B-SAS-03",
                "A SAS needs an expiry, in its URL or in its stored policy.",
            ),
            (_FAILED, "utc time", "B-SAS-03", "The times of a SAS are UTC times."),
            (
                "AuthorizationSourceIPMismatch",
                "",
                "B-SAS-04",
                "The SAS is for other addresses (sip).",
            ),
            (
                "AuthorizationProtocolMismatch",
                "",
                "B-SAS-05",
                "The SAS permits HTTPS only (spr=https).",
            ),
            (
                "AuthorizationPermissionMismatch",
                "it needs sp=",
                "B-SAS-06",
                "The SAS lacks a right that the operation needs.",
            ),
            (
                "UnauthorizedBlobOverwrite",
                "",
                "B-SAS-09",
                "The right c alone creates a blob, and replaces none.",
            ),
            (
                _FAILED,
                "is not well formed: sp=",
                "B-SAS-06",
                "sp has letters that exist, each once.",
            ),
            (_FAILED, "is not well formed: sv=", "B-SAS-07", "sv is a service version."),
            (_FAILED, "is not well formed: spr=", "B-SAS-05", "spr is https, or https,http."),
        ),
    ),
    *_section(
        _ACCESS,
        "service-sas",
        None,
        (
            (_FAILED, "sr='", "B-SSA-03", "sr names the kind of resource that the SAS is for."),
            (_FAILED, "sr=bs reaches", "B-SSA-03", "sr=bs serves one snapshot."),
            (_FAILED, "sr=b reaches", "B-SSA-03", "sr=b serves the blob itself only."),
            (
                _FAILED,
                "sas identifier cannot be found",
                "B-SSA-05",
                "The stored policy that the SAS names (si) does not exist.",
            ),
            (
                "InvalidQueryParameterValue",
                "the stored access policy",
                "B-SSA-06",
                "A field stands in the URL or in the policy, not in both.",
            ),
            (
                "AuthorizationFailure",
                "was issued for another resource",
                "B-SSA-02",
                "A service SAS is for one resource.",
            ),
            (
                "AuthorizationFailure",
                "no service sas can permit",
                "B-SSA-01",
                "No service SAS permits this operation.",
            ),
            (
                _FAILED,
                "user delegation key",
                "B-SSA-09",
                "The user delegation key was not issued by this server.",
            ),
        ),
    ),
    *_section(
        _ACCESS,
        "account-sas",
        None,
        (
            (
                "AuthorizationFailure",
                "no account sas can permit",
                "B-ASA-03",
                "No account SAS permits this operation.",
            ),
            (
                "AuthorizationServiceMismatch",
                "",
                "B-ASA-02",
                "The account SAS is for other services (ss).",
            ),
            (
                "AuthorizationResourceTypeMismatch",
                "",
                "B-ASA-02",
                "The account SAS is for other types of resources (srt).",
            ),
            (
                _FAILED,
                "an account sas",
                "B-ASA-04",
                "An account SAS needs ss, srt, sp and se, and has no si.",
            ),
        ),
    ),
    *_section(
        _ACCESS,
        "bearer-tokens",
        None,
        (
            (
                "InvalidAuthenticationInfo",
                "token",
                "B-BRR-04",
                "The token was not issued for this server, or does not hold now.",
            ),
        ),
    ),
    *_section(
        _ACCESS,
        "roles",
        None,
        (
            (
                "AuthorizationPermissionMismatch",
                "the role",
                "B-ROL-01",
                "The user has no role that permits the operation.",
            ),
            (
                "AuthorizationPermissionMismatch",
                "no role can permit it",
                "B-ROL-05",
                "No role permits the operation.",
            ),
            (
                "AuthorizationFailure",
                "no sas can permit it",
                "B-ROL-05",
                "No SAS permits the operation.",
            ),
            (
                "AuthorizationFailure",
                "no role can permit it",
                "B-ROL-05",
                "No role permits the operation.",
            ),
        ),
    ),
    *_section(
        _ACCESS,
        "user-delegation",
        None,
        (
            (
                _FAILED,
                "only authentication scheme bearer",
                "B-UDK-02",
                "User delegation keys are for bearer tokens.",
            ),
        ),
    ),
    *_section(
        _ACCESS,
        "public-access",
        Service.BLOB,
        (
            (
                "ResourceNotFound",
                "",
                "B-PUB-01",
                "Without credentials, a private container is as one that is not there.",
            ),
        ),
    ),
    *_section(
        _ACCESS,
        "public-access",
        None,
        (
            (
                "NoAuthenticationInformation",
                "",
                "B-PUB-02",
                "Without credentials, only public containers are read.",
            ),
        ),
    ),
    *_section(
        _LEASES,
        "leases-in-other-operations-on-blobs",
        Service.BLOB,
        (
            ("LeaseIdMissing", "", "", "The resource is leased, and the request has no lease id."),
            ("LeaseLost", "", "", "The lease of this id is over."),
            (
                "LeaseIdMismatchWithBlobOperation",
                "",
                "",
                "The lease id is not that of the present lease.",
            ),
        ),
    ),
    *_section(
        _LEASES,
        "lease-operations",
        Service.BLOB,
        (
            ("LeaseAlreadyPresent", "", "", "Another client has the lease."),
            (
                "LeaseIdMismatchWithLeaseOperation",
                "",
                "",
                "The lease id is not that of the present lease.",
            ),
        ),
    ),
    *_section(
        _CONDITIONS,
        "conditions-on-writes",
        Service.BLOB,
        (("ConditionNotMet", "", "", "A condition of the request does not hold."),),
    ),
    *_section(
        _QUEUE,
        "pop-receipts",
        Service.QUEUE,
        (("PopReceiptMismatch", "", "", "The pop receipt is not the newest one of the message."),),
    ),
    *_section(
        _TABLE,
        "writes",
        Service.TABLE,
        (
            (
                "UpdateConditionNotSatisfied",
                "",
                "",
                "The entity has changed since its ETag was read.",
            ),
        ),
    ),
    *_section(
        _FILE,
        "access-to-files",
        Service.FILE,
        (("SharingViolation", "", "", "An SMB client has the file open, and does not share it."),),
    ),
    *_section(
        _REQUESTS,
        "limits",
        Service.BLOB,
        (("RequestBodyTooLarge", "", "", "The body is larger than the operation takes."),),
    ),
    *_section(
        _REQUESTS,
        "limits",
        None,
        (
            (
                "RequestHeaderFieldsTooLarge",
                "",
                "B-LIM-03",
                "The headers exceed the server's bounds.",
            ),
            ("InsufficientStorage", "", "B-LIM-06", "The disk is full."),
        ),
    ),
)


def rule_of(code: str, text: str, service: Service | None) -> RuleRow:
    """Return the rule of a refusal. If no row is for it, the rule is the page on errors."""
    known = text.lower()
    for rule in RULES:
        fits = rule.service is None or rule.service is service
        if rule.code == code and fits and rule.holds in known:
            return rule
    return RuleRow(code, "", "", ERRORS_PAGE, _ADVICE, "")


def refused_by(note: RefusalNote | None) -> str:
    """Return the function that refused a request, as the access log names it; "" = unknown."""
    return "" if note is None or note.rule is None else rule_name(note.rule)


def link_of(rule: RuleRow) -> str:
    """An address, or a path of the repository where this installation knows no address."""
    return f"{_documentation()}{rule.page}#{rule.anchor}"


@cache
def _documentation() -> str:
    """Return the address of the repository's files of this release, with a slash; "" = unknown."""
    try:
        addresses: Sequence[str] = metadata.metadata(_DISTRIBUTION).get_all("Project-URL") or ()
    except metadata.PackageNotFoundError:
        return ""
    for label, _, address in (one.partition(", ") for one in addresses):
        if label == "Documentation" and "/docs/" in address:
            return f"{address.partition('/docs/')[0]}/"
    return ""
