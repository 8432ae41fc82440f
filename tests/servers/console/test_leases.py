"""`GET leases`: the time that a lease of another client has left, told to who may read the blob."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from strongroom.config import OAuth, RolesSource
from tests.auth import tokens
from tests.servers.console.served import (
    API,
    BANK,
    SHOP,
    VERSION,
    Answer,
    ServedConsole,
    serving,
)

READER = "reader-of-one-container"
LEASE_ID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """Two accounts, and a reader of one container of one of them."""
    roles = tmp_path_factory.mktemp("roles") / "roles.json"
    role = "Storage Blob Data Reader"
    assignment = {"principal": READER, "role": role, "account": "shop", "resource": "public"}
    roles.write_text(json.dumps({"assignments": [assignment]}))
    roles.chmod(0o600)
    with serving(SHOP, BANK, oauth=OAuth(), roles=RolesSource(roles, must_exist=True)) as found:
        for container in ("public", "secret"):
            assert put(found, f"/shop/{container}?restype=container").status == 201
        yield found


def put(served: ServedConsole, target: str, **fields: str) -> Answer:
    named = {f"x-ms-{name.replace('_', '-')}": value for name, value in fields.items()}
    return served.own("blob").signed(target, method="PUT", body=b"", fields=named)


def leased(served: ServedConsole, container: str, blob: str, duration: str = "30") -> None:
    """Make a blob, and acquire a lease on it."""
    assert put(served, f"/shop/{container}/{blob}", blob_type="BlockBlob").status == 201
    found = put(
        served,
        f"/shop/{container}/{blob}?comp=lease",
        lease_action="acquire",
        lease_duration=duration,
        proposed_lease_id=LEASE_ID,
    )
    assert found.status == 201


def by_reader(served: ServedConsole, target: str) -> Answer:
    token = tokens.token(oid=READER, aud="https://storage.azure.com")
    fields = {"Authorization": f"Bearer {token}", "x-ms-version": VERSION}
    return served.ask(f"{API}{target}", fields=fields)


def test_a_lease_with_an_end_tells_the_time_left_and_not_its_id(served: ServedConsole) -> None:
    leased(served, "public", "a%2Fb%20c")
    answer = served.api("leases?container=public&blob=a%2Fb%20c")
    found = answer.json()
    assert found["state"] == "leased"
    assert 0 < found["left_s"] <= 30
    assert LEASE_ID.encode() not in answer.body
    put(served, "/shop/public/a%2Fb%20c?comp=lease", lease_action="break", lease_break_period="9")
    found = served.api("leases?container=public&blob=a%2Fb%20c").json()
    assert found["state"] == "breaking"
    assert 0 < found["left_s"] <= 9


def test_without_an_end_or_a_lease_there_is_no_time(served: ServedConsole) -> None:
    leased(served, "public", "for-ever", "-1")
    found = served.api("leases?container=public&blob=for-ever").json()
    assert found == {"state": "leased", "left_s": None}
    put(served, "/shop/public/free", blob_type="BlockBlob")
    found = served.api("leases?container=public&blob=free").json()
    assert found == {"state": "available", "left_s": None}


def test_a_container_has_a_lease_too(served: ServedConsole) -> None:
    query = "restype=container&comp=lease"
    put(served, f"/shop/secret?{query}", lease_action="acquire", lease_duration="20")
    found = served.api("leases?container=secret").json()
    assert found["state"] == "leased"
    assert 0 < found["left_s"] <= 20


def test_only_who_may_read_the_blob_is_told(served: ServedConsole) -> None:
    for container in ("public", "secret"):
        leased(served, container, "shared")
    assert by_reader(served, "leases?account=shop&container=public&blob=shared").status == 200
    hidden = by_reader(served, "leases?account=shop&container=secret&blob=shared")
    assert hidden.status == 403
    assert b"left_s" not in hidden.body
    # The other account has no such container: what it names is its own.
    for query in ("", "account=shop&"):
        other = served.api(f"leases?{query}container=public&blob=shared", BANK)
        assert (other.status, other.json()["error"]["code"]) == (404, "ContainerNotFound")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 400, "InvalidQuery"),
        ("?container=", 400, "InvalidQuery"),
        ("?container=public&blob=", 400, "InvalidQuery"),
        ("?container=missing", 404, "ContainerNotFound"),
        ("?container=public&blob=missing", 404, "BlobNotFound"),
        ("?container=public%2Fx", 400, "InvalidResourceName"),
    ],
)
def test_mistakes_are_named(served: ServedConsole, query: str, status: int, code: str) -> None:
    answer = served.api(f"leases{query}")
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)
