"""The answers of a server's own endpoints to a program on any machine.

Lives here: one GET with bounds of time and size, over HTTP or HTTPS. Must not live here: what the
answers mean (report.py). Proxies of the environment are not used: they hide which server answers.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024


class UnusableAddress(Exception):
    """The URL or the CA file cannot be used; the text says why."""


class NoAnswer(Exception):
    """The server did not answer in time, or not as HTTP; the text says what happened."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer of the server."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is reached. `tls` None = plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None

    @classmethod
    def parse(cls, url: str, ca_file: Path | None) -> ServerAddress:
        """`ca_file` has the certificates to trust (PEM); None = those of this machine.

        Raises: UnusableAddress.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UnusableAddress(f"{url!r} is no URL: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UnusableAddress(f"{url!r}: give a URL such as http://127.0.0.1:10000")
        if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
            raise UnusableAddress(f"{url!r}: give only scheme, host and port")
        if parts.scheme == "http":
            if ca_file is not None:
                raise UnusableAddress("a CA file goes with https only")
            return cls(parts.hostname, port or 80, None)
        return cls(parts.hostname, port or 443, _trusting(ca_file))

    def get(self, path: str, timeout_s: float) -> HttpAnswer:
        """Return the answer to one GET. Raises: NoAnswer."""
        answers: list[HttpAnswer | Exception] = []

        def ask() -> None:
            try:
                answers.append(self._get(path, timeout_s))
            except (OSError, http.client.HTTPException, ValueError) as error:
                answers.append(error)

        # A socket's timeout starts again with each byte. The thread bounds the whole request.
        asking = threading.Thread(target=ask, name="status", daemon=True)
        asking.start()
        asking.join(timeout_s)
        if not answers:
            raise NoAnswer(f"no answer within {timeout_s:g} s")
        if isinstance(answers[0], Exception):
            raise NoAnswer(_reason(answers[0]))
        return answers[0]

    def _get(self, path: str, timeout_s: float) -> HttpAnswer:
        connection = (
            http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
            if self.tls is None
            else http.client.HTTPSConnection(
                self.host, self.port, timeout=timeout_s, context=self.tls
            )
        )
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read(_ANSWER_BYTES_MAX + 1)
            if len(body) > _ANSWER_BYTES_MAX:
                raise ValueError(f"an answer of more than {_ANSWER_BYTES_MAX} bytes")
            return HttpAnswer(response.status, body)
        finally:
            connection.close()


def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UnusableAddress(f"{ca_file} cannot be used as a CA file: {error}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); see --ca-file"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"the answer is not HTTP: {str(error) or type(error).__name__}"
