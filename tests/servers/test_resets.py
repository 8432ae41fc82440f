"""Who may ask for a reset on a server that other machines can reach: each account must sign."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence

import pytest

from strongroom.app import App
from strongroom.auth.accounts import Account
from strongroom.clock import ManualClock
from strongroom.config import Settings
from strongroom.engines.base import Unavailable
from strongroom.engines.memory import MemoryEngine
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.resets import ResetProblem, Resets
from strongroom.services.core.runner import Services
from strongroom.values import TICKS_PER_S, rfc1123
from strongroom.wire.core.http import Headers, Request
from tests.app.bodies import Bytes
from tests.conformance.signing import authorization

SHOP, BANK = Account("shop", (b"first", b"second")), Account("bank", (b"third",))
TARGET = "/.strongroom/reset"
ALL = {"containers": 0, "queues": 0, "tables": 0, "shares": 0}
Signer = tuple[Account, int]
SHOP_FIRST, SHOP_SECOND, BANK_FIRST = (SHOP, 0), (SHOP, 1), (BANK, 0)


def ask(
    target: str,
    signers: Sequence[Signer],
    *,
    sent_to: str = "",
    scheme: str = "SharedKey",
    age_s: float = 0,
    repeats: bool = False,
    requires_signature: bool = True,
    proxy: tuple[str, str] | None = None,
) -> dict[str, int]:
    """Send a reset to a server of the accounts `shop` and `bank`.

    Arguments:
        signers: whose keys sign it.
        sent_to: the target that is sent; empty = the one that is signed.
        age_s: how long ago it was signed.
        proxy: a field that a proxy adds.
    """
    clock = ManualClock()
    services = Services(MemoryEngine(clock, allows_reset=True), clock)
    resets = Resets(services, lambda: (SHOP, BANK), clock.wall_ticks, True, requires_signature)
    date = rfc1123(clock.wall_ticks() - round(age_s * TICKS_PER_S))
    fields = [("x-ms-date", date), ("x-ms-version", "2025-11-05"), ("Content-Length", "0")]
    signed = ", ".join(
        authorization(
            scheme,
            account.name,
            base64.b64encode(account.keys[key]).decode(),
            "POST",
            target,
            fields,
        )
        for account, key in signers
    )
    fields += [("Authorization", signed)] * (1 + repeats) if signers else []
    fields += [proxy] if proxy else []
    request = Request("POST", sent_to or target, Headers(fields), Bytes(b""), "192.0.2.1")
    return asyncio.run(resets.run(request))


def refused(*given: object, **more: object) -> int:
    with pytest.raises(ResetProblem) as problem:
        ask(*given, **more)  # type: ignore[arg-type]
    return problem.value.status


def test_either_key_of_an_account_signs_for_it() -> None:
    for signer in (SHOP_FIRST, SHOP_SECOND):
        assert ask(f"{TARGET}?account=shop", [signer]) == ALL
    assert ask(f"{TARGET}?account=bank&service=queue", [BANK_FIRST]) == {"queues": 0}


def test_a_reset_of_all_is_signed_by_each_account() -> None:
    assert ask(TARGET, [SHOP_FIRST, BANK_FIRST]) == ALL
    assert ask(TARGET, [BANK_FIRST, SHOP_SECOND]) == ALL
    assert refused(TARGET, [SHOP_FIRST]) == 403
    assert refused(TARGET, [BANK_FIRST]) == 403
    assert refused(f"{TARGET}?service=blob", [SHOP_FIRST]) == 403


def test_the_signature_of_another_account_does_not_count() -> None:
    assert refused(f"{TARGET}?account=bank", [SHOP_FIRST]) == 403
    thief = Account("bank", (b"guessed",))
    assert refused(f"{TARGET}?account=bank", [(thief, 0)]) == 403
    assert refused(TARGET, [SHOP_FIRST, (thief, 0)]) == 403


def test_a_request_without_a_signature_is_refused() -> None:
    assert refused(TARGET, []) == 403
    assert ask(TARGET, [], requires_signature=False) == ALL


@pytest.mark.parametrize(
    "proxy",
    [
        ("X-Forwarded-For", "192.0.2.7"),
        ("Forwarded", "for=192.0.2.7"),
        ("Via", "1.1 proxy"),
        ("X-Real-IP", "192.0.2.7"),
        ("X-Forwarded-Host", ""),
    ],
)
def test_what_a_proxy_forwards_is_signed_on_loopback_too(proxy: tuple[str, str]) -> None:
    assert refused(TARGET, [], requires_signature=False, proxy=proxy) == 403
    assert ask(TARGET, [SHOP_FIRST, BANK_FIRST], requires_signature=False, proxy=proxy) == ALL


def test_what_is_reset_is_signed_too() -> None:
    signed = f"{TARGET}?account=shop&service=queue"
    assert ask(signed, [SHOP_FIRST]) == {"queues": 0}
    assert refused(signed, [SHOP_FIRST], sent_to=f"{TARGET}?account=shop") == 403
    lite = {"sent_to": f"{TARGET}?account=shop", "scheme": "SharedKeyLite"}
    assert refused(f"{TARGET}?account=shop", [SHOP_FIRST], scheme="SharedKeyLite") == 403
    assert refused(signed, [SHOP_FIRST], **lite) == 403


def test_a_signature_is_valid_for_fifteen_minutes() -> None:
    assert ask(f"{TARGET}?account=shop", [SHOP_FIRST], age_s=14 * 60) == ALL
    assert refused(f"{TARGET}?account=shop", [SHOP_FIRST], age_s=16 * 60) == 403


def test_a_header_that_is_given_twice_is_refused() -> None:
    assert refused(f"{TARGET}?account=shop", [SHOP_FIRST], repeats=True) == 400


@pytest.mark.parametrize(
    ("host", "signed"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True), ("", True)],
)
def test_a_server_that_other_machines_reach_requires_signatures(host: str, signed: bool) -> None:
    clock = ManualClock()
    app = App(Settings(data=None, host=host, allow_reset=True), clock)
    app.services = Services(MemoryEngine(clock), clock)
    app.accounts = ServedAccounts((SHOP,), None, None, lambda accounts: None)
    assert app._resets().requires_signature is signed


def test_a_store_that_cannot_serve_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    services = Services(MemoryEngine(clock, allows_reset=True), clock)
    answer = Resets(services, lambda: (SHOP,), clock.wall_ticks, True, False).answer
    request = Request("POST", TARGET, Headers(()), Bytes(b""))
    assert asyncio.run(answer(request)) == (200, {"removed": ALL})

    async def unavailable() -> int:
        raise Unavailable("the disk is gone")

    monkeypatch.setattr(services.store, "now", unavailable)
    status, facts = asyncio.run(answer(request))
    assert status == 503
    assert "the disk is gone" in str(facts["error"])
