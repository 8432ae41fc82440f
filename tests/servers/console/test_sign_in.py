"""The sign-in by code through a running server: over TLS, at the issuer that it was given."""

from __future__ import annotations

import http.client
import json
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from strongroom.app import App
from strongroom.config import ConfigError, OAuth, SelfSigned
from strongroom.testing.ports import HOST
from strongroom.testing.server import InProcessServer
from tests.auth import tokens
from tests.servers.console.served import API, SHOP, settings, with_console
from tests.servers.console.small_issuer import CLIENT, issuing

VERIFIER = "v" * 43


def ask(app: App, method: str, name: str, body: Any = None) -> tuple[int, Any]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(HOST, app.ports["console"], context=context)
    try:
        connection.request(method, API + name, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_person_signs_in_at_the_issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "keys.json"
    keys.write_bytes(tokens.key_set())
    with issuing(tmp_path) as issuer:
        monkeypatch.setenv("SSL_CERT_FILE", str(issuer.certificate))
        more = {"oauth": OAuth(issuer.url, str(keys)), "tls": SelfSigned()}
        with InProcessServer(with_console(settings(SHOP, **more), oidc_client=CLIENT)) as server:
            app = server._app
            status, session = ask(app, "GET", "session")
            assert status == 200
            assert session["issuer"]["authorization_endpoint"] == f"{issuer.url}/authorize"
            assert session["issuer"]["name"] in issuer.url
            origin = f"https://{HOST}:{app.ports['console']}"
            issuer.issue("code", VERIFIER, f"{origin}/")
            given = {"code": "code", "verifier": VERIFIER, "redirect_uri": f"{origin}/"}
            status, found = ask(app, "POST", "tokens", given)
            assert (status, found["access_token"]) == (200, "an.access.token")
            status, problem = ask(app, "POST", "tokens", given)
            assert (status, problem["error"]["code"]) == (403, "SignInRefused")
            connection = http.client.HTTPConnection(HOST, app.ports["console"])
            connection.request("POST", f"{API}tokens", json.dumps(given))
            plain = connection.getresponse()
            assert (plain.status, b"https" in plain.read()) == (403, True)
            connection.close()


def test_an_issuer_that_cannot_be_asked_is_logged_and_not_offered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_bytes(tokens.key_set())
    more = {"oauth": OAuth("https://localhost:1", str(keys)), "tls": SelfSigned()}
    with (
        caplog.at_level(logging.WARNING, "strongroom"),
        InProcessServer(with_console(settings(SHOP, **more), oidc_client=CLIENT)) as server,
    ):
        assert ask(server._app, "GET", "session")[1]["issuer"] is None
        assert ask(server._app, "POST", "tokens", {})[0] == 404
    assert "nobody can sign in at the issuer" in caplog.text


def test_a_sign_in_without_tls_is_refused_at_the_start(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_bytes(tokens.key_set())
    plain = settings(SHOP, oauth=OAuth("https://localhost:1", str(keys)))
    with pytest.raises(ConfigError, match="needs TLS"):
        InProcessServer(with_console(plain, oidc_client=CLIENT))
