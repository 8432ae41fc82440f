"""Nobody learns from the read API which accounts there are: refusals are the same for all names."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from strongroom.auth.accounts import Account
from strongroom.console.serving import NAME as COORDINATION
from strongroom.console.serving import open_coordination
from strongroom.servers.console.api.table import TABLE, UNSIGNED
from tests.auth import tokens
from tests.servers.console.served import API, SHOP, VERSION, Answer, ServedConsole
from tests.servers.console.two_accounts import OPERATING, READER, by_token, two_accounts

THERE, NOWHERE = "bank", "bonk"
STRANGER: Final = "stranger"
WRONG_KEY: Final = b"wrong"
SAS: Final = "sv=2021-12-02&ss=b&srt=sco&sp=rl&se=2099-01-01T00%3A00%3A00Z&sig=AAAA"
QUERIES: Final = {
    "files/opens": "share=papers&path=a",
    "leases": "container=public&blob=a",
}
EXPLAINED: Final = {"access/explain": b'{"sas": "?sv=2021-12-02&sr=c&sp=r&sig=AAAA"}'}


class Endpoint:
    """One endpoint of the table, or of the parts that are mounted beside it."""

    def __init__(self, method: str, path: str, has_account: bool = True) -> None:
        self.method, self.path, self.has_account = (
            method,
            path.replace("{number}", "1"),
            has_account,
        )
        self.body = EXPLAINED.get(path, b"{}") if method == "POST" else None

    def target(self, account: str) -> str:
        parts = [QUERIES.get(self.path, "")]
        parts += [f"account={account}"] if self.has_account else []
        query = "&".join(filter(None, parts))
        return f"{self.path}?{query}" if query else self.path


ENDPOINTS: Final = [
    *(
        Endpoint(row.method, row.path, "account" in row.parameters)
        for row in TABLE
        if row.path not in UNSIGNED
    ),
    Endpoint("GET", COORDINATION),
    Endpoint("POST", f"{COORDINATION}/gates/go/open"),
    Endpoint("POST", f"{COORDINATION}/locks/a/break"),
]

Ask = Callable[[ServedConsole, Endpoint, str], Answer]


def token_of(principal: str) -> Ask:
    def ask(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
        return by_token(served, principal, endpoint.target(account), endpoint.method, endpoint.body)

    return ask


def own_key(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
    target = f"{API}{endpoint.target(account)}"
    return served.signed(target, SHOP, endpoint.method, endpoint.body)


def wrong_key(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
    target = f"{API}{endpoint.target(account)}"
    other = Account(account, (WRONG_KEY,))
    return served.signed(target, other, endpoint.method, endpoint.body)


def malformed_token(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
    fields = {"Authorization": "Bearer x.y", "x-ms-version": VERSION}
    target = f"{API}{endpoint.target(account)}"
    return served.ask(target, endpoint.method, endpoint.body, fields)


def expired_token(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
    token = tokens.token(oid=STRANGER, aud="https://storage.azure.com", exp=1)
    fields = {"Authorization": f"Bearer {token}", "x-ms-version": VERSION}
    target = f"{API}{endpoint.target(account)}"
    return served.ask(target, endpoint.method, endpoint.body, fields)


def user_sas(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
    """A token of a stranger beside a signature for one user, which has to be checked."""
    token = tokens.token(oid=STRANGER, aud="https://storage.azure.com")
    fields = {"Authorization": f"Bearer {token}", "x-ms-version": VERSION}
    more = f"account={account}&{SAS.replace('ss=b&srt=sco', 'sr=b')}&sduoid=x&skoid=x&sktid=x"
    return served.ask(f"{API}{endpoint.path}?{more}", endpoint.method, endpoint.body, fields)


def by_sas(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
    target = f"{API}{endpoint.path}?account={account}&{SAS}"
    return served.ask(target, endpoint.method, endpoint.body)


def unsigned(served: ServedConsole, endpoint: Endpoint, account: str) -> Answer:
    return served.ask(f"{API}{endpoint.target(account)}", endpoint.method, endpoint.body)


WAYS: Final[dict[str, Ask]] = {
    "the key of another account": own_key,
    "a wrong key": wrong_key,
    "a token without a role": token_of(STRANGER),
    "a token with a role elsewhere": token_of(READER),
    "no token": malformed_token,
    "an expired token": expired_token,
    "a token with a SAS": user_sas,
    "a SAS": by_sas,
    "nothing": unsigned,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    with two_accounts(tmp_path_factory.mktemp("roles")) as found:

        async def mount() -> Callable[[], None]:
            return open_coordination(found.server._app)

        loop = found.server.loop
        close = asyncio.run_coroutine_threadsafe(mount(), loop).result(30)
        yield found
        loop.call_soon_threadsafe(close)


def asked(served: ServedConsole, endpoint: Endpoint, way: str, account: str) -> Answer:
    """Ask, again while this machine has asked too often."""
    while (answer := WAYS[way](served, endpoint, account)).status == 429:
        time.sleep(0.1)
    return answer


def said(answer: Answer, account: str) -> tuple[int, str, list[tuple[str, str]]]:
    """What an answer says, apart from the name that was asked for, and from times."""
    text = answer.body.decode().replace(account, "NAME")
    without_dates = [line for line in text.split("\\n") if not line.startswith("x-ms-date:")]
    headers = [one for one in answer.headers.items() if one[0] not in ("date", "content-length")]
    return answer.status, "\n".join(without_dates), headers


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_an_account_that_is_there_and_one_that_is_not_get_one_answer(
    served: ServedConsole, endpoint: Endpoint, way: str
) -> None:
    there, nowhere = (asked(served, endpoint, way, name) for name in (THERE, NOWHERE))
    assert THERE != NOWHERE and len(THERE) == len(NOWHERE)
    assert said(there, THERE) == said(nowhere, NOWHERE)
    if way != "the key of another account":
        assert there.status in (400, 401, 403)


def test_a_wrong_key_is_answered_by_what_was_signed_and_says_what_to_check(
    served: ServedConsole,
) -> None:
    for name in (THERE, NOWHERE):
        error = wrong_key(served, ENDPOINTS[0], name).json()["error"]
        assert (error["code"], error["needs"]) == ("AuthenticationFailed", "sign-in")
        assert f"/{name}/.strongroom/console/v1/" in error["text"]
        assert error["text"].endswith("Check the account's name and its key.")


def test_a_token_that_names_no_account_means_one_in_which_it_has_a_role(
    served: ServedConsole,
) -> None:
    who = by_token(served, "someone", "who").json()
    assert who["account"] == THERE  # not the first one of the server, which it must not learn of
    assert by_token(served, "someone", "who?account=shop").status == 403
    assert by_token(served, READER, "who").json()["account"] == "shop"


def test_an_operator_may_name_every_account_and_is_told_which_is_unknown(
    served: ServedConsole,
) -> None:
    for name in ("shop", "bank"):
        assert by_token(served, OPERATING, f"who?account={name}").json()["account"] == name
    refused = by_token(served, OPERATING, f"who?account={NOWHERE}")
    assert (refused.status, refused.json()["error"]["code"]) == (403, "NoSuchAccount")
    assert json.loads(refused.body)["error"]["text"] == "This server has no account 'bonk'."
