"""SharedKey and SharedKeyLite as a client computes them, by the standard library alone.

Independent of the server's code on purpose. Source: "Authorize with Shared Key".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from urllib.parse import unquote

Pairs = Sequence[tuple[str, str]]

EMPTY_LENGTH_SINCE = "2015-02-21"
EMPTY_VALUES_SINCE = "2016-05-31"
_STANDARD = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_LITE = ("content-md5", "content-type", "date")


def mac(key: str, text: str) -> str:
    """base64(HMAC-SHA256(base64-decoded key, text))."""
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def string_to_sign(
    scheme: str, account: str, method: str, target: str, headers: Pairs, ignore_hyphens: bool
) -> str:
    """Return the string that SharedKey or SharedKeyLite signs.

    Arguments:
        scheme: `SharedKey` or `SharedKeyLite`.
        target: the request target as sent, including the account of path style.
        ignore_hyphens: the order of x-ms headers that newer SDKs use.
    """
    found = {name.lower(): value.strip() for name, value in headers}
    version = found.get("x-ms-version", "9999")
    lines = [method]
    for name in _STANDARD if scheme == "SharedKey" else _LITE:
        value = found.get(name, "")
        if name == "date" and "x-ms-date" in found:
            value = ""
        if name == "content-length" and value == "0" and version >= EMPTY_LENGTH_SINCE:
            value = ""
        lines.append(value)
    own = sorted(
        ((name, value) for name, value in found.items() if name.startswith("x-ms-")),
        key=lambda pair: (pair[0].replace("-", ""), pair[0]) if ignore_hyphens else pair[0],
    )
    lines += [f"{name}:{value}" for name, value in own if value or version >= EMPTY_VALUES_SINCE]
    resource = _resource if scheme == "SharedKey" else _lite_resource
    return "\n".join([*lines, resource(account, target)])


def _resource(account: str, target: str) -> str:
    path, _, query = target.partition("?")
    found: dict[str, list[str]] = {}
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        found.setdefault(unquote(name).lower(), []).append(unquote(value))
    lines = [f"{name}:{','.join(sorted(found[name]))}" for name in sorted(found)]
    return "\n".join([f"/{account}{path}", *lines])


def _lite_resource(account: str, target: str) -> str:
    path, _, query = target.partition("?")
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name.lower() == "comp":
            return f"/{account}{path}?comp={unquote(value)}"
    return f"/{account}{path}"


def authorization(
    scheme: str,
    account: str,
    key: str,
    method: str,
    target: str,
    headers: Pairs,
    ignore_hyphens: bool = False,
) -> str:
    """The Authorization header of a request."""
    text = string_to_sign(scheme, account, method, target, headers, ignore_hyphens)
    return f"{scheme} {account}:{mac(key, text)}"
