"""What a client may have signed instead: known variants of the string to sign, tried in turn.

Lives here: the variants as a table, and the search for one that gives the signature that came. Must
not live here: the strings of clients that are served (auth/canonical.py). Signatures are compared
in constant time. The search is for viewers who have the account's key anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from strongroom.auth.accounts import Account, signing_key
from strongroom.auth.canonical import (
    DEFAULT_FORM,
    SIGNED_HEADERS,
    Scheme,
    StringsToSign,
    other_forms,
)
from strongroom.auth.request import Service
from strongroom.auth.shared_key import Credential
from strongroom.wire.core.http import Headers, Request

_VARIANTS_MAX: Final = 200
_OTHER_SCHEME: Final = {
    Scheme.SHARED_KEY: Scheme.SHARED_KEY_LITE,
    Scheme.SHARED_KEY_LITE: Scheme.SHARED_KEY,
}
_OTHER_METHODS: Final = ("GET", "HEAD", "PUT", "POST", "DELETE", "MERGE", "PATCH")


class SigningVariant(NamedTuple):
    """Another request that a client may have signed, and what it tells."""

    says: str
    request: Request


def matching_variant(
    request: Request, credential: Credential, service: Service, account: Account
) -> str | None:
    """Return what differs between the request and what its client signed; None if no known variant
    has the signature that came."""
    given = credential.signature.encode("latin-1", "replace")

    def is_signed(one: Request, scheme: Scheme, kind: Service) -> bool:
        texts = StringsToSign(scheme, kind, one, account.name)
        try:
            if signing_key(account.signers, texts.of(DEFAULT_FORM), given):
                return True
            forms = other_forms(one, account.name)
            return any(signing_key(account.signers, texts.of(form), given) for form in forms)
        except UnicodeEncodeError:
            return False

    for number, variant in enumerate(_variants(request, service, account.name)):
        if number >= _VARIANTS_MAX:
            break
        if is_signed(variant.request, credential.scheme, service):
            return variant.says
    if is_signed(request, _OTHER_SCHEME[credential.scheme], service):
        return f"The string was made as for {_OTHER_SCHEME[credential.scheme].value}."
    for kind in Service:
        if kind is not service and is_signed(request, credential.scheme, kind):
            return f"The string was made by the rules of the {kind.value} service."
    return None


def _variants(request: Request, service: Service, account: str) -> Iterator[SigningVariant]:
    yield from _paths(request, service, account)
    yield from _queries(request)
    yield from _lengths(request)
    yield from _without_headers(request)
    for method in _OTHER_METHODS:
        if method != request.method:
            yield SigningVariant(
                f"The method {method} was signed, and {request.method} was sent.",
                _with(request, method=method),
            )


def _paths(request: Request, service: Service, account: str) -> Iterator[SigningVariant]:
    path = request.path
    changes: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("The path was signed without its last slash.", lambda text: text.rstrip("/")),
        ("The path was signed with a slash at its end.", lambda text: f"{text}/"),
        (
            "The path was signed without the account. Path style has the account twice: "
            "/ACCOUNT/ACCOUNT/container.",
            lambda text: _without_first(text, f"{request.mount}/{account}", request.mount),
        ),
        (
            "The path was signed without the account and the service before it.",
            lambda text: _without_first(text, f"{request.mount}/{account}", ""),
        ),
        (
            "The account was signed once more than the path has it.",
            lambda text: f"{request.mount}/{account}{text.removeprefix(request.mount)}",
        ),
        (
            f"The path was signed without {request.mount or '/blob'}, which selects the service on "
            "this port.",
            lambda text: text.removeprefix(request.mount),
        ),
        (
            f"The path was signed with /{service.value} in front, which a proxy removed.",
            lambda text: f"/{service.value}{text}",
        ),
        (
            "The path was signed decoded; it is signed as sent.",
            lambda text: unquote(text, "latin-1"),
        ),
        (
            "The path was signed encoded, and came decoded: a proxy may have decoded it.",
            lambda text: quote(text, safe="/%", encoding="latin-1"),
        ),
        ("The path was signed encoded twice.", lambda text: text.replace("%", "%25")),
        (
            "An apostrophe in the path was signed as ', and sent as %27: browsers rewrite it.",
            lambda text: text.replace("%27", "'"),
        ),
        (
            "An apostrophe in the path was signed as %27, and sent as '.",
            lambda text: text.replace("'", "%27"),
        ),
        ("A + in the path was signed as %20.", lambda text: text.replace("+", "%20")),
        ("Two slashes in the path were signed as one, or the reverse.", _single_slashes),
    )
    for says, change in changes:
        changed = change(path)
        if changed != path:
            yield SigningVariant(says, _with(request, path=changed or "/"))


def _without_first(text: str, start: str, instead: str) -> str:
    rest = text.removeprefix(start)
    return text if rest == text or (rest and not rest.startswith("/")) else f"{instead}{rest}"


def _single_slashes(text: str) -> str:
    while "//" in text:
        text = text.replace("//", "/")
    return text


def _queries(request: Request) -> Iterator[SigningVariant]:
    query = request.query
    if query is None:
        return
    yield SigningVariant("The query was not signed.", _with(request, query=None))
    encoded = query.replace("%", "%25")
    if encoded != query:
        yield SigningVariant(
            "The values of the query were signed encoded; they are signed decoded.",
            _with(request, query=encoded),
        )
    pieces = query.split("&")
    for at, piece in enumerate(pieces):
        rest = "&".join(pieces[:at] + pieces[at + 1 :])
        name = piece.partition("=")[0]
        says = f"The parameter {name} was not signed, or was added on the way."
        yield SigningVariant(says, _with(request, query=rest or None))


def _lengths(request: Request) -> Iterator[SigningVariant]:
    given = request.headers.get("content-length")
    if given is not None:
        says = "Content-Length was not signed."
        yield SigningVariant(says, _replaced(request, "content-length", None))
    if given != "0":
        says = "Content-Length was signed as 0."
        old = _replaced(request, "content-length", "0")
        yield SigningVariant(says, old)
    else:
        # Before version 2015-02-21 the zero is signed.
        old = _replaced(_replaced(request, "x-ms-version", "2015-02-20"), "content-length", "0")
        yield SigningVariant(
            "Content-Length was signed as 0; from 2015-02-21 it is signed empty.", old
        )


def _without_headers(request: Request) -> Iterator[SigningVariant]:
    kind = request.headers.get("content-type")
    if kind is not None and ";" in kind:
        yield SigningVariant(
            "Content-Type was signed without its parameters, or a proxy added them.",
            _replaced(request, "content-type", kind.partition(";")[0].strip()),
        )
    for name, _ in request.headers.lowered():
        if name == "content-length":
            continue
        if name in SIGNED_HEADERS or name.startswith("x-ms-"):
            yield SigningVariant(
                f"The header {name} was not signed, or was added on the way.",
                _replaced(request, name, None),
            )
    for name, value in _ASSUMED.items():
        if name not in request.headers:
            yield SigningVariant(
                f"The header {name} was signed as '{value}', and did not arrive.",
                _replaced(request, name, value),
            )


_ASSUMED: Final = {
    "content-type": "application/octet-stream",
    "content-encoding": "gzip",
    "if-none-match": "*",
    "if-match": "*",
}


def _replaced(request: Request, name: str, value: str | None) -> Request:
    fields = [pair for pair in request.headers.fields if pair[0].lower() != name]
    if value is not None:
        fields.append((name, value))
    return _with(request, fields=fields)


class _Same:
    """Stands for a part that stays as it is."""


_SAME: Final = _Same()


def _with(
    request: Request,
    *,
    method: str | None = None,
    path: str | None = None,
    query: str | _Same | None = _SAME,
    fields: list[tuple[str, str]] | None = None,
) -> Request:
    headers = request.headers if fields is None else Headers(fields)
    made = Request(method or request.method, request.target, headers, request.body)
    made.mount, made.tls = request.mount, request.tls
    made.path = request.path if path is None else path
    made.query = request.query if isinstance(query, _Same) else query
    return made
