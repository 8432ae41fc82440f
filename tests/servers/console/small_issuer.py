"""A small issuer of tokens for tests: its description, and a token endpoint that checks PKCE.

Lives here: the issuer. Must not live here: what the console makes of its answers. Source: OpenID
Connect Core 1.0, RFC 7636.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from strongroom.clock import SystemClock
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.testing.ports import free_port

CLIENT = "console-page"


def challenge_of(verifier: str) -> str:
    """The code challenge of a verifier, by S256."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


@dataclass
class SmallIssuer:
    """An issuer on loopback with TLS.

    Attributes:
        url: its name, the claim `iss`.
        certificate: what trusts it (PEM).
        codes: by code, the challenge and the redirect URI that it was issued for.
        mood: how it misbehaves: "" not at all, else "slow", "huge", "redirect", "nonsense"; for
            browsers "denied", "other state", "other nonce", "bad id_token", "no id_token".
        asked: the paths that were asked for.
        access_token: that it gives.
        nonces: by code, what the authorization endpoint was asked with.
    """

    url: str
    certificate: Path
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    mood: str = ""
    description: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    access_token: str = "an.access.token"
    nonces: dict[str, str] = field(default_factory=dict)

    def trust(self) -> ssl.SSLContext:
        """A context that trusts it."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def issue(self, code: str, verifier: str, redirect_uri: str) -> None:
        """Issue a code, as after a person's sign-in."""
        self.codes[code] = (challenge_of(verifier), redirect_uri)

    def authorize(self, query: str) -> str:
        """Answer the authorization endpoint, as after a person's consent: return where the browser
        goes."""
        one = {name: values[0] for name, values in parse_qs(query).items()}
        assert (one["client_id"], one["response_type"]) == (CLIENT, "code")
        assert one["code_challenge_method"] == "S256"
        state = "another" if self.mood == "other state" else one["state"]
        answer = {"error": "access_denied", "error_description": "Alice said no.", "state": state}
        if self.mood != "denied":
            code = f"code-{len(self.nonces)}"
            self.codes[code] = (one["code_challenge"], one["redirect_uri"])
            self.nonces[code] = one["nonce"]
            answer = {"code": code, "state": state}
        return f"{one['redirect_uri']}?{urlencode(answer)}"

    def tokens(self, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Answer the token endpoint."""
        one = {name: values[0] for name, values in form.items()}
        challenge, redirect_uri = self.codes.pop(one.get("code", ""), ("", ""))
        right = (
            one.get("grant_type") == "authorization_code"
            and one.get("client_id") == CLIENT
            and one.get("redirect_uri") == redirect_uri
            and bool(challenge)
            and challenge_of(one.get("code_verifier", "")) == challenge
        )
        if not right:
            return 400, {"error": "invalid_grant", "error_description": "no such\x00 code"}
        given = {
            "access_token": self.access_token,
            "token_type": "Bearer",
            "expires_in": 600,
            "id_token": self._id_token(one["code"]),
        }
        if self.mood == "no id_token":
            del given["id_token"]
        return 200, given

    def _id_token(self, code: str) -> str:
        if code not in self.nonces or self.mood == "bad id_token":
            return "an.id.token"
        nonce = "another" if self.mood == "other nonce" else self.nonces[code]
        payload = base64.urlsafe_b64encode(json.dumps({"nonce": nonce}).encode()).decode()
        return f"e30.{payload.rstrip('=')}.x"


@contextlib.contextmanager
def issuing(folder: Path) -> Iterator[SmallIssuer]:
    """Serve an issuer."""
    certificate, key = self_signed_certificate(folder, SystemClock())
    port = free_port()
    issuer = SmallIssuer(f"https://localhost:{port}", certificate)
    issuer.description = {
        "issuer": issuer.url,
        "authorization_endpoint": f"{issuer.url}/authorize",
        "token_endpoint": f"{issuer.url}/token",
    }
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(issuer))
    server.daemon_threads = True
    # Browsers open connections ahead, which must not keep others from being accepted.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(issuer: SmallIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            issuer.asked.append(parts.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", issuer.authorize(parts.query))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self._answer(200, issuer.description)

        def do_POST(self) -> None:
            issuer.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, found = issuer.tokens(parse_qs(body.decode()))
            if issuer.mood == "slow":
                time.sleep(30)
            if issuer.mood == "redirect":
                self.send_response(307)
                self.send_header("Location", f"{issuer.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if issuer.mood == "huge":
                found = {"access_token": "x" * 100_000}
            self._answer(status, found)

        def _answer(self, status: int, found: dict[str, Any]) -> None:
            body = b"<html>" if issuer.mood == "nonsense" else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Write no lines."""

    return Handler
