"""One raw connection to the server under test, and the rules for every answer.

`Channel.ask` sends a request, valid or not, and checks the answer. It must be well formed and no
failure of the server. It has the headers of every answer, and an error body that agrees with them.
Must not live here: the requests (requests.py, documents.py).
"""

from __future__ import annotations

import re
import socket
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from email.utils import formatdate

from strongroom.errors import core as errors
from tests.conformance.answer import GUID, RFC1123
from tests.conformance.client import Credential
from tests.conformance.signing import authorization

_TIMEOUT_S = 20.0
_CODES = {(row.status, row.code) for row in errors.table()}
_VERSION = re.compile(r"\d{4}-\d\d-\d\d")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ALWAYS = ("x-ms-request-id", "x-ms-version", "Date", "Server", "Content-Length")
# A header that an attacker would add if a value were echoed with its line ends.
INJECTED = "x-injected"
Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FuzzRequest:
    """A request. Names, values and target are text; non-ASCII characters are sent as UTF-8.

    `scheme` is None for a request without Authorization.
    """

    method: str
    target: str
    headers: Fields = ()
    body: bytes = b""
    scheme: str | None = "SharedKey"
    latin1: bool = False


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer as received."""

    status: int
    headers: Fields
    body: bytes

    def all(self, name: str) -> list[str]:
        """The values of every header of that name."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        """The value of a header that is sent at most once."""
        found = self.all(name)
        assert len(found) <= 1, f"{name} came {len(found)} times"
        return found[0] if found else None


@dataclass(slots=True)
class Channel:
    """Sends requests to one server, and reconnects when a connection has ended.

    Arguments:
        port: the server's.
        credential: the signing key.
    """

    port: int
    credential: Credential
    _socket: socket.socket | None = None
    _rest: bytes = field(default=b"")

    def ask(self, sent: FuzzRequest) -> ReceivedAnswer:
        """Send a request, check its answer, and return it."""
        raw = encode(sent, self.credential, self.port)
        try:
            got = self._answer(raw, sent)
        except BaseException:
            # Remaining bytes on the connection must not be taken for another answer.
            self.close()
            raise
        check(sent, got)
        return got

    def _answer(self, raw: bytes, sent: FuzzRequest) -> ReceivedAnswer:
        kept = self._socket is not None
        try:
            return self._exchange(raw, sent.method)
        except (ConnectionError, EOFError):
            # A kept connection may have ended between two requests; a new one must not.
            self.close()
            assert kept, f"no answer to {sent}"
            return self._exchange(raw, sent.method)

    def is_well(self) -> None:
        """Fail unless the server reports that it is ready."""
        self.close()
        got = self.ask(FuzzRequest("GET", "/.strongroom/health", scheme=None))
        assert got.status == 200, got

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def _exchange(self, raw: bytes, method: str) -> ReceivedAnswer:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), _TIMEOUT_S)
        assert self._rest == b"", f"came unasked: {self._rest[:200]!r}"
        self._socket.sendall(raw)
        head = self._until(b"\r\n\r\n")
        while head.startswith(b"HTTP/1.1 100 "):
            head = self._until(b"\r\n\r\n")
        status, headers = _parse(head)
        got = ReceivedAnswer(status, headers, b"")
        length = int(got.get("Content-Length") or 0)
        bodiless = method == "HEAD" or status in (204, 304)
        got = ReceivedAnswer(status, headers, b"" if bodiless else self._exactly(length))
        if method == "HEAD" or (got.get("Connection") or "").lower() == "close":
            self._end()
        return got

    def _end(self) -> None:
        """Close the sending side; the server must have nothing more to send either."""
        assert self._socket is not None
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while more := self._socket.recv(65536):
                self._rest += more
        except ConnectionError:
            pass  # the server may have ended the connection with unread bytes
        assert self._rest == b"", f"more than the answer: {self._rest[:200]!r}"
        self.close()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(mark)
        return head + mark

    def _exactly(self, count: int) -> bytes:
        while len(self._rest) < count:
            self._more()
        body, self._rest = self._rest[:count], self._rest[count:]
        return body

    def _more(self) -> None:
        assert self._socket is not None
        data = self._socket.recv(65536)
        if not data:
            raise EOFError("the connection ended before the answer did")
        self._rest += data


def encode(sent: FuzzRequest, credential: Credential, port: int) -> bytes:
    """Return the bytes of a request, signed unless it is anonymous."""
    names = {name.lower() for name, _ in sent.headers}
    added = [("Host", f"127.0.0.1:{port}"), ("x-ms-version", "2025-11-05")]
    if sent.scheme is not None:
        added.append(("x-ms-date", formatdate(usegmt=True)))
    if sent.body or sent.method in ("PUT", "POST"):
        added.append(("Content-Length", str(len(sent.body))))
    fields = [pair for pair in added if pair[0].lower() not in names]
    fields += sent.headers
    if sent.scheme is not None and "authorization" not in names:
        key = credential.key
        text = authorization(sent.scheme, credential.account, key, sent.method, sent.target, fields)
        fields.append(("Authorization", text))
    lines = [f"{sent.method} {sent.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields]
    text = "\r\n".join([*lines, "", ""])
    try:
        head = text.encode("latin-1" if sent.latin1 else "utf-8", "surrogatepass")
    except UnicodeEncodeError:
        head = text.encode("utf-8", "surrogatepass")
    return head + sent.body


def _parse(head: bytes) -> tuple[int, Fields]:
    """Parse status and headers of an answer, strictly by RFC 9112."""
    first, *lines = head.decode("latin-1").split("\r\n")
    found = re.fullmatch(r"HTTP/1\.1 ([1-5][0-9]{2}) ([\t -~\x80-\xff]*)", first)
    assert found, first
    assert lines[-2:] == ["", ""], head
    headers = []
    for line in lines[:-2]:
        name, colon, value = line.partition(": ")
        assert colon and _NAME.fullmatch(name), line
        assert re.fullmatch(r"[\t -~\x80-\xff]*", value), line
        assert name.lower() != INJECTED, head
        headers.append((name, value))
    return int(found[1]), tuple(headers)


@dataclass(frozen=True, slots=True)
class Shown:
    """Request and answer for a message, formatted only if a check fails."""

    sent: FuzzRequest
    got: ReceivedAnswer

    def __str__(self) -> str:
        return f"{self.sent}\n{self.got}"


def check(sent: FuzzRequest, got: ReceivedAnswer) -> None:
    """Check the rules for every answer. Raises AssertionError that shows both."""
    shown = Shown(sent, got)
    assert got.status < 500 or got.status == 501, shown
    if sent.target.startswith("/.strongroom/"):
        return
    for name in _ALWAYS:
        # Answers 204 and 304 have no length.
        if name != "Content-Length" or got.status not in (204, 304):
            assert len(got.all(name)) == 1, f"{name}: {shown}"
    assert GUID.fullmatch(got.all("x-ms-request-id")[0]), shown
    assert RFC1123.fullmatch(got.all("Date")[0]), shown
    assert _VERSION.fullmatch(got.all("x-ms-version")[0]), shown
    code = got.get("x-ms-error-code")
    if got.status < 400 and got.status != 304:
        assert code is None, shown
        _check_success(got, shown)
    else:
        _check_error(sent, got, code, shown)


def _check_success(got: ReceivedAnswer, shown: Shown) -> None:
    # A blob may have the type XML too, but it is no document of the server.
    own = got.get("x-ms-blob-type") is None
    if own and got.body and got.get("Content-Type") == "application/xml":
        assert ET.fromstring(got.body.decode("utf-8-sig")).tag, shown


def _check_error(sent: FuzzRequest, got: ReceivedAnswer, code: str | None, shown: Shown) -> None:
    if code is not None:
        assert (got.status, code) in _CODES, shown
    if sent.method == "HEAD" or got.status == 304:
        assert got.body == b"", shown
        return
    assert got.get("Content-Type") == "application/xml", shown
    root = ET.fromstring(got.body.decode("utf-8-sig"))
    told = root.findtext("Code")
    assert root.tag == "Error" and root.findtext("Message"), shown
    assert told is not None and (got.status, told) in _CODES, shown
    assert code in (None, told), shown
