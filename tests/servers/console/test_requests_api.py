"""The tail of requests over the read API of a running server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    DEVELOPMENT_ACCOUNT_NAME,
    development_account,
)
from strongroom.config import AccountSources, ConsoleSettings, Settings
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.servers.console.tail_server import OTHER

API = "/.strongroom/console/v1"
OWNER = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
OTHERS = Credential(OTHER.name, base64.b64encode(OTHER.keys[0]).decode())


class Served:
    """A server with a console, and two accounts of which neither is an operator's."""

    def __init__(self) -> None:
        self.console_port = free_port()
        settings = Settings(
            data=None,
            blob_port=free_port(),
            queue_port=free_port(),
            table_port=free_port(),
            file_port=free_port(),
            accounts=AccountSources(fixed=(development_account(), OTHER)),
            console=ConsoleSettings(port=self.console_port),
        )
        self.server = InProcessServer(settings)
        self.blob_port = self.server.port

    def blob(self) -> Client:
        return Client(self.blob_port, OWNER)

    def ask(self, target: str, who: Credential = OWNER, auth: str | None = "SharedKey") -> Any:
        answer = Client(self.console_port, who, prefix="").get(API + target, auth=auth)
        return answer.status, json.loads(answer.body)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    found = Served()
    assert found.blob().put("/many?restype=container").status == 201
    assert found.blob().put("/many/b", PUT_BLOB, b"x").status == 201
    yield found
    found.server.stop()


def test_the_tail_is_read_by_signed_requests_which_are_not_in_it(served: Served) -> None:
    status, before = served.ask("/requests")
    assert status == 200
    served.blob().get("/many/b")
    served.blob().get("/many/gone")
    status, page = served.ask(f"/requests?after={before['newest']}&wait_s=5&limit=10")
    assert status == 200
    assert [one["status"] for one in page["requests"]] == [200, 404]
    assert page["newest"] == before["newest"] + 2
    query = f"/requests?after={before['newest']}&filter=status:404%20path:gone"
    (row,) = served.ask(query)[1]["requests"]
    status, found = served.ask(f"/requests/{row['number']}")
    assert status == 200
    assert found["request"] == row
    assert found["why"]["text"].startswith("The specified blob does not exist.")
    assert f":{served.blob_port}/devstoreaccount1/many/gone" in found["replay"]["curl"]


def test_data_through_the_console_is_in_the_tail_and_says_so(served: Served) -> None:
    before = served.ask("/requests")[1]["newest"]
    through = Client(served.console_port, OWNER, prefix="/blob/devstoreaccount1")
    assert through.get("/many/b").status == 200
    (row,) = served.ask(f"/requests?after={before}&wait_s=5")[1]["requests"]
    assert row["through_console"] and row["operation"] == "Get Blob"
    replay = served.ask(f"/requests/{row['number']}")[1]["replay"]
    assert f"127.0.0.1:{served.blob_port}/devstoreaccount1/many/b" in replay["curl"]
    assert str(served.console_port) not in json.dumps(replay)


def test_another_account_sees_neither_the_row_nor_the_request(served: Served) -> None:
    served.blob().get("/many/b")
    newest = served.ask("/requests")[1]["newest"]
    assert served.ask("/requests", OTHERS)[1]["requests"] == []
    status, problem = served.ask(f"/requests/{newest}", OTHERS)
    assert (status, problem["error"]["code"]) == (404, "RequestNotKept")
    # The same as for a number that never was, so it tells nothing.
    missing = served.ask("/requests/999999999", OTHERS)[1]["error"]
    assert missing["code"] == "RequestNotKept" and missing["needs"] == problem["error"]["needs"]


def test_a_request_for_an_account_that_does_not_exist_is_for_operators(served: Served) -> None:
    Client(served.blob_port, OWNER, prefix="/nobody").get("/many/b")
    rows = served.ask("/requests?filter=path:/nobody/")[1]["requests"]
    assert rows == []


@pytest.mark.parametrize(
    "query",
    ["filter=status:x", "after=-1", "wait_s=31", "limit=0", "limit=1001", "after=a", "wait_s=0.5"],
)
def test_a_parameter_that_cannot_be_read_is_refused(served: Served, query: str) -> None:
    status, problem = served.ask(f"/requests?{query}")
    assert status == 400 and problem["error"]["text"]


def test_without_a_signature_nothing_is_read(served: Served) -> None:
    for auth, expected in ((None, (401, 403)), ("SharedKeyLite", (403,))):
        assert served.ask("/requests", auth=auth)[0] in expected
        assert served.ask("/requests/1", auth=auth)[0] in expected
    wrong = Credential(OWNER.account, base64.b64encode(b"wrong").decode())
    assert served.ask("/requests", wrong)[0] == 403
