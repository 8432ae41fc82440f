"""One service, which the benchmarks call with an account SAS on every request.

The SAS is computed once, so the client signs nothing per request; the server checks one signature
per request, as it would with SharedKey. Source: Microsoft's "Create an account SAS".
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.engine import Found, Load, Report, Step, run, sent_length

ACCOUNT: Final = "devstoreaccount1"
# The development key, which is public.
ACCOUNT_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
API_VERSION: Final = "2021-12-02"
HOST: Final = "127.0.0.1"
BLOCK_BLOB: Final = {
    "x-ms-blob-type": "BlockBlob",
    "Content-Type": "application/octet-stream",
}

APPEND_BLOB: Final = {"x-ms-blob-type": "AppendBlob"}


class UnexpectedAnswer(Exception):
    """A server gave an answer with which a benchmark cannot continue."""


def account_sas(services: str = "bqt") -> str:
    """Return a query string that permits everything on some services for two days."""
    now = datetime.datetime.now(datetime.UTC)
    expiry = (now + datetime.timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    permissions, kinds, version = "rwdlacuptf", "sco", "2020-08-04"
    to_sign = "\n".join(
        (ACCOUNT, permissions, services, kinds, "", expiry, "", "https,http", version, "")
    )
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), to_sign.encode(), hashlib.sha256).digest()
    return urllib.parse.urlencode(
        {
            "sv": version, "ss": services, "srt": kinds, "sp": permissions, "se": expiry,
            "spr": "https,http", "sig": base64.b64encode(digest).decode(),
        }
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service on loopback."""

    port: int
    sas: str

    def target(self, path: str) -> str:
        """Return the request target of a path of the account, signed."""
        return f"/{ACCOUNT}{path}{'&' if '?' in path else '?'}{self.sas}"

    def step(
        self,
        name: str,
        method: str,
        path: str,
        *accepted: int,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        captured_header: str = "",
        found: tuple[Found, ...] = (),
    ) -> Step:
        """Return a request for the load engine; path and body may contain its marks."""
        fields = {"Host": f"{HOST}:{self.port}", "x-ms-version": API_VERSION}
        if method == "PUT" or body:
            fields["Content-Length"] = str(sent_length(body))
        lines = [f"{key}: {value}\r\n" for key, value in {**fields, **(headers or {})}.items()]
        head = f"{method} {self.target(path)} HTTP/1.1\r\n{''.join(lines)}\r\n"
        return Step(name, head.encode(), body, accepted, captured_header, found)

    def load(self, load: Load) -> Report:
        """Run a load on this endpoint."""
        return run(HOST, self.port, load)

    def fill(self, step: Step, count: int, connections: int = 8) -> Report:
        """Send one request `count` times.

        Raises:
            UnexpectedAnswer: a request was not accepted.
        """
        limit_s = 120.0 + count / 10
        report = self.load(Load((step,), connections, limit_s, cycles_max=count))
        if report.bad or report.cycles < count:
            raise UnexpectedAnswer(
                f"{step.name}: {report.cycles} of {count} done, {report.bad} bad"
            )
        return report

    def call(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, bytes]:
        """Send one request from Python, and return its status and body.

        Raises:
            OSError: no answer.
        """
        connection = http.client.HTTPConnection(HOST, self.port, timeout=120)
        try:
            fields = {"x-ms-version": API_VERSION, "Content-Length": str(len(body))}
            connection.request(method, self.target(path), body, {**fields, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def make(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        method: str = "PUT",
    ) -> None:
        """Send a request that creates a resource, which may exist already.

        Raises:
            UnexpectedAnswer: the answer has another status.
        """
        status, answer = self.call(method, path, headers, body)
        if status not in (201, 204, 409):
            raise UnexpectedAnswer(f"{method} {path}: {status} {answer[:200]!r}")
