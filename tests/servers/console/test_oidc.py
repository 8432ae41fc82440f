"""The exchange of a code at the issuer: PKCE, and the limits of what the issuer may answer."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.servers.console import oidc
from strongroom.servers.console.api.documents import ExchangedToken
from strongroom.servers.console.oidc import EXCHANGES_MAX, IssuerUnusable, SignIn, discover
from strongroom.servers.console.refusals import ApiRefusal
from tests.servers.console.small_issuer import CLIENT, SmallIssuer, issuing

ORIGIN = "https://console.example.net"
VERIFIER = "v" * 43


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[SmallIssuer]:
    with issuing(tmp_path) as found:
        yield found


def found_by(issuer: SmallIssuer) -> SignIn:
    return asyncio.run(discover(issuer.url, CLIENT, issuer.trust()))


def exchanged(sign_in: SignIn, **more: object) -> ExchangedToken:
    body = {"code": "code", "verifier": VERIFIER, "redirect_uri": f"{ORIGIN}/", **more}
    return asyncio.run(sign_in.exchange(json.dumps(body).encode(), ORIGIN))


def refused(sign_in: SignIn, **more: object) -> tuple[int, str]:
    with pytest.raises(ApiRefusal) as refusal:
        exchanged(sign_in, **more)
    assert VERIFIER not in refusal.value.text
    return refusal.value.status, refusal.value.text


def test_a_code_becomes_a_token_once(issuer: SmallIssuer) -> None:
    sign_in = found_by(issuer)
    assert sign_in.issuer.authorization_endpoint == f"{issuer.url}/authorize"
    assert (sign_in.issuer.client_id, sign_in.issuer.scope) == (CLIENT, "openid")
    issuer.issue("code", VERIFIER, f"{ORIGIN}/")
    assert exchanged(sign_in) == ExchangedToken(
        access_token="an.access.token", expires_in_s=600, id_token="an.id.token"
    )
    assert refused(sign_in) == (403, "no such  code")
    assert issuer.asked == ["/.well-known/openid-configuration", "/token", "/token"]


def test_another_verifier_is_refused_by_the_issuer(issuer: SmallIssuer) -> None:
    issuer.issue("code", "w" * 43, f"{ORIGIN}/")
    assert refused(found_by(issuer))[0] == 403


@pytest.mark.parametrize(
    "more",
    [
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": ORIGIN},
        {"verifier": "short"},
        {"verifier": VERIFIER + "&client_id=x"},
        {"code": ""},
        {"code": "a b"},
        {"code": "x" * 5000},
        {"code": 7},
        {"token_endpoint": "https://evil.example/"},
    ],
)
def test_what_cannot_be_a_code_is_not_sent(issuer: SmallIssuer, more: dict[str, object]) -> None:
    sign_in = found_by(issuer)
    assert refused(sign_in, **more)[0] == 400
    assert "/token" not in issuer.asked


@pytest.mark.parametrize("mood", ["redirect", "huge", "nonsense", "slow"])
def test_an_issuer_that_misbehaves_is_bounded(
    issuer: SmallIssuer, mood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in = found_by(issuer)
    issuer.issue("code", VERIFIER, f"{ORIGIN}/")
    issuer.mood = mood
    monkeypatch.setattr(oidc, "TIMEOUT_S", 1.0 if mood == "slow" else 5.0)
    assert refused(sign_in)[0] == 502
    assert "/elsewhere" not in issuer.asked


def test_few_exchanges_are_under_way_at_a_time_over_one_context(
    issuer: SmallIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(issuer.certificate))
    monkeypatch.setattr(oidc, "TIMEOUT_S", 1.0)
    sign_in = asyncio.run(discover(issuer.url, CLIENT))
    issuer.mood = "slow"
    # Anybody may ask: no exchange may read the system's authorities again.
    monkeypatch.delattr(ssl, "create_default_context")

    async def ask() -> int:
        body = {"code": "code", "verifier": VERIFIER, "redirect_uri": f"{ORIGIN}/"}
        with pytest.raises(ApiRefusal) as refusal:
            await sign_in.exchange(json.dumps(body).encode(), ORIGIN)
        return refusal.value.status

    async def play() -> list[int]:
        together = await asyncio.gather(*(ask() for _ in range(EXCHANGES_MAX + 2)))
        return [*together, await ask()]

    assert asyncio.run(play()) == [502] * EXCHANGES_MAX + [429, 429, 502]


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://localhost/token"},
        {"token_endpoint": "https://localhost/a b"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": 7},
    ],
)
def test_a_description_that_cannot_be_used(issuer: SmallIssuer, wrong: dict[str, object]) -> None:
    issuer.description |= wrong
    with pytest.raises(IssuerUnusable):
        found_by(issuer)


def test_an_issuer_that_nobody_trusts_or_that_is_gone(issuer: SmallIssuer) -> None:
    with pytest.raises(IssuerUnusable, match="cannot be asked"):
        asyncio.run(discover(issuer.url, CLIENT))
    with pytest.raises(IssuerUnusable, match="cannot be asked"):
        asyncio.run(discover("https://localhost:1", CLIENT))
    with pytest.raises(IssuerUnusable, match="no https URL"):
        asyncio.run(discover("http://localhost:1", CLIENT))
