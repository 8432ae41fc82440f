"""A client of a running server's File service, for commands: signed requests and their answers.

Lives here: the server and account of a request, one request, List Handles and Force Close Handles.
Must not live here: what is shown (files.py). Sources: "List Handles", "Force Close Handles";
"Configure Azure Storage connection strings".

A key comes from the accounts file or the environment, never from an argument, since `ps` shows
arguments.
"""

from __future__ import annotations

import dataclasses
import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode, urlsplit

from strongroom.errors.core import StorageError
from strongroom.wire.core import xml
from strongroom.wire.core.xml import Element

if TYPE_CHECKING:
    from strongroom.coordination.stores.azure.account import AzureAccount

_VERSION: Final = "2021-12-02"
_TIMEOUT_S: Final = 30.0
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_REFUSED_FROM: Final = 300
_HANDLE: Final = "x-ms-handle-id"


class ServerUnavailable(Exception):
    """No server answered, or the answer is not a File service's; the text says which."""


class RequestRefused(Exception):
    """The server has refused a request; the text has the error's code and message."""


@dataclass(frozen=True, slots=True)
class OpenHandle:
    """One handle of SMB, as List Handles shows it.

    Attributes:
        opened: an RFC 1123 date.
        rights: of Read, Write and Delete.
    """

    handle: str
    path: str
    client: str
    session: str
    opened: str
    rights: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileService:
    """The File service of an account."""

    account: AzureAccount

    def handles(self, place: str, *, below: bool) -> Iterator[OpenHandle]:
        """Yield the open handles of a share, directory or file.

        Arguments:
            place: SHARE or SHARE/PATH.
            below: include everything below a directory.
        """
        marker = ""
        while True:
            query = {"comp": "listhandles"} | ({"marker": marker} if marker else {})
            _, body = self._request("GET", place, query, _recursive(below))
            page = _document(body, "EnumerationResults")
            entries = page.child("Entries")
            yield from map(_opened, () if entries is None else entries.children)
            marker = _text(page, "NextMarker")
            if not marker:
                return

    def close(self, place: str, handle: str, *, below: bool) -> tuple[int, int]:
        """How many were closed, and how many could not be. `handle` is an id; `*` = all.

        `place` and `below` are as for `handles`.
        """
        closed = failed = 0
        marker = ""
        while True:
            query = {"comp": "forceclosehandles"} | ({"marker": marker} if marker else {})
            headers = {_HANDLE: handle, "content-length": "0", **_recursive(below)}
            answer, _ = self._request("PUT", place, query, headers)
            closed += _count(answer.get("x-ms-number-of-handles-closed"))
            failed += _count(answer.get("x-ms-number-of-handles-failed"))
            # Strongroom closes all handles in one answer; Azure may need several.
            marker = answer.get("x-ms-marker") or ""
            if not marker:
                return closed, failed

    def _request(
        self, method: str, place: str, query: Mapping[str, str], more: Mapping[str, str]
    ) -> tuple[http.client.HTTPMessage, bytes]:
        base = urlsplit(self.account.endpoint)
        path = f"{base.path}/{quote(place, safe='/')}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION, **more}
        # Content-Length: 0 is sent, but is not part of the signature.
        signed = {name: value for name, value in headers.items() if name != "content-length"}
        text = urlencode(query, quote_via=quote)
        if self.account.sas:
            text = f"{text}&{self.account.sas}"
        else:
            headers["authorization"] = self.account.authorization(method, path, query, signed)
        return self._send(method, f"{path}?{text}", headers)

    def _send(
        self, method: str, target: str, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPMessage, bytes]:
        base = urlsplit(self.account.endpoint)
        server = f"{base.scheme}://{base.netloc}"
        kind = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
        try:
            with closing(kind(base.netloc, timeout=_TIMEOUT_S)) as connection:
                connection.request(method, target, headers=dict(headers))
                answer = connection.getresponse()
                body = answer.read(_ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServerUnavailable(f"{server} does not answer: {_error_text(error)}") from None
        if answer.status >= _REFUSED_FROM:
            raise RequestRefused(_refusal(answer, body))
        return answer.headers, body


def _recursive(below: bool) -> dict[str, str]:
    return {"x-ms-recursive": "true"} if below else {}


def _opened(element: Element) -> OpenHandle:
    rights = element.child("AccessRightList")
    return OpenHandle(
        _text(element, "HandleId"),
        _text(element, "Path"),
        _text(element, "ClientIp"),
        _text(element, "SessionId"),
        _text(element, "OpenTime"),
        tuple(one.text for one in rights.children) if rights is not None else (),
    )


def _text(element: Element, name: str) -> str:
    child = element.child(name)
    return "" if child is None else child.text


def _document(body: bytes, root: str) -> Element:
    try:
        return xml.read(body, root, _ANSWER_BYTES_MAX)
    except StorageError:
        raise ServerUnavailable("the answer is no list of handles: is it a File service?") from None


def _count(text: str | None) -> int:
    if text is None or not (text.isascii() and text.isdigit()):
        raise ServerUnavailable("the answer does not count handles: is it a File service?")
    return int(text)


def _refusal(answer: http.client.HTTPResponse, body: bytes) -> str:
    """Return `CODE: message`, as far as the answer contains them."""
    code = answer.headers.get("x-ms-error-code") or str(answer.status)
    try:
        message = _text(_document(body, "Error"), "Message").partition("\n")[0]
    except ServerUnavailable:
        message = ""
    return f"{code}: {message or answer.reason}"


def _error_text(error: object) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        # See docs/operating.md: the server's own certificate is trusted by naming its file.
        return f"{error.verify_message}; SSL_CERT_FILE names the certificate to trust"
    return (getattr(error, "strerror", None) or str(error)) if error else "no reason is given"


def is_url(endpoint: str) -> bool:
    """Return whether requests can be sent to an endpoint: http or https, and a host."""
    try:
        parts = urlsplit(endpoint)
        # The port may be no number, or out of range.
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def with_endpoint(account: AzureAccount, endpoint: str) -> AzureAccount:
    """Return the account at another URL; a URL without a path gets the account's name as path."""
    parts = urlsplit(endpoint.rstrip("/"))
    url = endpoint.rstrip("/") if parts.path else f"{endpoint.rstrip('/')}/{account.name}"
    return dataclasses.replace(account, endpoint=url)
