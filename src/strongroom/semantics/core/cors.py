"""Cross-origin resource sharing: which rules are valid, and which rule applies to a request.

Source: "Cross-Origin Resource Sharing (CORS) support for Azure Storage".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import Extras, StorageError, invalid_header
from strongroom.service_properties import CorsRule

METHODS: Final = frozenset(("DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT"))
_ORIGIN_MISSING: Final = "A required CORS header is not present."
_ANY: Final = "*"
_SUBDOMAINS: Final = "://*."
_LABELS: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


def check_rules(rules: Sequence[CorsRule]) -> None:
    """Check rules against the limits: five rules, 2 KiB, 64 literal and two prefixed headers
    each."""
    if len(rules) > limits.CORS_RULES_MAX:
        reason = f"There are more than {limits.CORS_RULES_MAX} CORS rules."
        raise StorageError(errors.INVALID_XML_DOCUMENT, None, (("Reason", reason),))
    if sum(map(_size_bytes, rules)) > limits.CORS_BYTES_MAX:
        raise _invalid("Cors", "more than 2 KiB")
    for rule in rules:
        _check_rule(rule)


def preflight(
    rules: Sequence[CorsRule],
    origin: str | None,
    method: str | None,
    requested_headers: Sequence[str],
) -> Extras:
    """The headers that answer a preflight request: those of the first rule that allows all of it.

    Arguments:
        origin, method: Origin and Access-Control-Request-Method, None when missing.
        requested_headers: the elements of Access-Control-Request-Headers.
    """
    if not origin:
        raise invalid_header("Origin", "", _ORIGIN_MISSING)
    if not method:
        raise invalid_header("Access-Control-Request-Method", "", _ORIGIN_MISSING)
    for rule in rules:
        if _matches(rule, origin, method) and all(
            _listed(rule.allowed_headers, header) for header in requested_headers
        ):
            return _preflight_answer(rule, origin, method, requested_headers)
    raise StorageError(errors.CORS_PREFLIGHT_FAILURE)


def actual(
    rules: Sequence[CorsRule],
    origin: str | None,
    method: str,
    response_headers: Iterable[str],
) -> Extras:
    """The headers that CORS adds to the response of any other request.

    Arguments:
        origin: the Origin header, None when missing.
        response_headers: the names of the response's own headers, of which a rule exposes some.
    """
    # The response may depend on the origin, so caches need this header with any origin.
    vary: Extras = (("Vary", "Origin"),) if rules else ()
    if not origin:
        return vary
    rule = next((rule for rule in rules if _matches(rule, origin, method)), None)
    if rule is None:
        return vary
    exposed = [name for name in response_headers if _listed(rule.exposed_headers, name)]
    expose: Extras = (("Access-Control-Expose-Headers", ",".join(exposed)),) if exposed else ()
    if _ANY in rule.allowed_origins:
        return (("Access-Control-Allow-Origin", _ANY), *expose)
    return (*_for_origin(origin), *expose, *vary)


def _preflight_answer(
    rule: CorsRule, origin: str, method: str, requested_headers: Sequence[str]
) -> Extras:
    allow: Extras = (("Access-Control-Allow-Methods", method),)
    if requested_headers:
        allow += (("Access-Control-Allow-Headers", ",".join(requested_headers)),)
    allow += (("Access-Control-Max-Age", str(rule.max_age_s)),)
    if _ANY in rule.allowed_origins:
        return (("Access-Control-Allow-Origin", _ANY), *allow)
    return (*_for_origin(origin), *allow, ("Vary", "Origin"))


def _for_origin(origin: str) -> Extras:
    return (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Allow-Credentials", "true"),
    )


def _matches(rule: CorsRule, origin: str, method: str) -> bool:
    allowed = rule.allowed_origins
    return method in rule.allowed_methods and (
        _ANY in allowed
        or origin in allowed
        or any(_is_subdomain(origin, pattern) for pattern in allowed)
    )


def _is_subdomain(origin: str, pattern: str) -> bool:
    """Whether a pattern such as `http://*.contoso.com` covers an origin. It needs the same scheme
    and port, and one or more labels in front of the domain. The domain itself is not covered."""
    scheme, wildcard, domain = pattern.partition(_SUBDOMAINS)
    if not wildcard:
        return False
    beginning, end = f"{scheme}://", f".{domain}"
    if not (origin.startswith(beginning) and origin.endswith(end)):
        return False
    return _LABELS.fullmatch(origin[len(beginning) : -len(end)]) is not None


def _listed(patterns: Iterable[str], header: str) -> bool:
    lower = header.lower()
    return any(
        lower.startswith(pattern[:-1].lower())
        if pattern.endswith(_ANY)
        else lower == pattern.lower()
        for pattern in patterns
    )


def _check_rule(rule: CorsRule) -> None:
    if not rule.allowed_origins:
        raise _invalid("AllowedOrigins", "")
    for origin in rule.allowed_origins:
        if len(origin) > limits.CORS_ORIGIN_CHARS_MAX:
            raise _invalid("AllowedOrigins", origin)
    if not rule.allowed_methods:
        raise _invalid("AllowedMethods", "")
    for method in rule.allowed_methods:
        if method not in METHODS:
            raise _invalid("AllowedMethods", method)
    if rule.max_age_s < 0:
        raise _invalid("MaxAgeInSeconds", str(rule.max_age_s))
    _check_headers("AllowedHeaders", rule.allowed_headers)
    _check_headers("ExposedHeaders", rule.exposed_headers)


def _check_headers(element: str, patterns: Sequence[str]) -> None:
    prefixed = sum(pattern.endswith(_ANY) and pattern != _ANY for pattern in patterns)
    literal = sum(not pattern.endswith(_ANY) for pattern in patterns)
    too_long = any(len(pattern) > limits.CORS_ORIGIN_CHARS_MAX for pattern in patterns)
    if (
        prefixed > limits.CORS_PREFIX_HEADERS_MAX
        or literal > limits.CORS_LITERAL_HEADERS_MAX
        or too_long
    ):
        raise _invalid(element, ",".join(patterns))


def _size_bytes(rule: CorsRule) -> int:
    lists = (rule.allowed_origins, rule.allowed_methods, rule.allowed_headers, rule.exposed_headers)
    return sum(len(",".join(words).encode("utf-8", "replace")) for words in lists)


def _invalid(element: str, value: str) -> StorageError:
    extras = (("XmlNodeName", element), ("XmlNodeValue", value[:1024]))
    return StorageError(errors.INVALID_XML_NODE_VALUE, None, extras)
