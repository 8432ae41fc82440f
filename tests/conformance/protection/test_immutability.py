"""Immutability policies and legal holds: rules B-IMM-*.

Races with the deletion of a container are in tests/services/containers/test_immutability.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from types import MappingProxyType

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobClient, ImmutabilityPolicy

from tests.conformance import appending, pages
from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import block_list, body, put, seen, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, source_url
from tests.conformance.leasing import A, Leased
from tests.conformance.listing import blob, page, properties
from tests.conformance.running import Running
from tests.conformance.sas import account_sas, service_sas

UNTIL, MODE = "x-ms-immutability-policy-until-date", "x-ms-immutability-policy-mode"
HOLD = "x-ms-legal-hold"
HELD, IMMUTABLE = "BlobImmutableDueToLegalHold", "BlobImmutableDueToPolicy"
OFF = "ImmutableStorageWithVersioningNotEnabled"
DAY_S = 24 * 60 * 60


class Box:
    """A container of an account with immutability.

    Arguments:
        client: of that account.
    """

    def __init__(self, server: Running, client: Client) -> None:
        self.server = server
        self.client = client
        expect(client.put("/box?restype=container"), 201)

    def date(self, seconds: float) -> str:
        """The date so far from the server's present one."""
        written = expect(self.client.put("/box?restype=container&comp=metadata"), 200)
        now = parsedate_to_datetime(written["Last-Modified"])
        return format_datetime(now + timedelta(seconds=seconds), usegmt=True)

    def policy(
        self,
        target: str,
        seconds: float = DAY_S,
        mode: str | None = None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Set Blob Immutability Policy."""
        headers = {UNTIL: self.date(seconds), **more} | ({} if mode is None else {MODE: mode})
        joined = "&" if "?" in target else "?"
        return self.client.put(f"{target}{joined}comp=immutabilityPolicies", headers)

    def hold(self, target: str, value: str = "true") -> Answer:
        """Set Blob Legal Hold."""
        joined = "&" if "?" in target else "?"
        return self.client.put(f"{target}{joined}comp=legalhold", {HOLD: value})

    def unprotect(self, target: str) -> Answer:
        """Delete Blob Immutability Policy."""
        joined = "&" if "?" in target else "?"
        return self.client.delete(f"{target}{joined}comp=immutabilityPolicies")

    def protection(self, target: str) -> tuple[str | None, str | None, str | None]:
        """Date, mode and hold, as both reads say."""
        found = [expect(ask(target), 200) for ask in (self.client.get, self.client.head)]
        told = [(one.get(UNTIL), one.get(MODE), one.get(HOLD)) for one in found]
        assert told[0] == told[1]
        return told[0]


@pytest.fixture
def box(server: Running, account: Client) -> Box:
    server.switch(account.account, immutability=True)
    return Box(server, account)


def test_a_policy_is_set_and_reported(box: Box) -> None:
    """B-IMM-03, B-IMM-05."""
    made = put(box.client, "/box/b")
    leased = Leased(box.server, box.client, "/box/b")
    leased.acquire()
    until = box.date(DAY_S)
    answer = expect(box.policy("/box/b", more={UNTIL: until}), 200)
    assert (answer[UNTIL], answer[MODE], answer.body) == (until, "unlocked", b"")
    assert box.protection("/box/b") == (until, "unlocked", None)
    assert (box.client.head("/box/b").etag, answer.get("ETag")) == (made.etag, None)
    assert box.client.head("/box/b")["x-ms-lease-state"] == "leased"
    longer = box.date(2 * DAY_S)
    locked = box.policy("/box/b", mode="LOCKED", more={UNTIL: longer})
    assert expect(locked, 200)[MODE] == "locked"
    assert box.protection("/box/b") == (longer, "locked", None)
    put(box.client, "/box/plain")
    assert box.protection("/box/plain") == (None, None, None)


def test_a_listing_says_what_it_is_asked(box: Box) -> None:
    """B-IMM-05, B-LST-10."""
    put(box.client, "/box/b")
    expect(box.hold("/box/b"), 200)
    until = expect(box.policy("/box/b", mode="locked"), 200)[UNTIL]
    words = {"ImmutabilityPolicyUntilDate": until, "ImmutabilityPolicyMode": "locked"}
    held = {"LegalHold": "true"}
    for include, wanted in (
        ("metadata", {}),
        ("immutabilitypolicy", words),
        ("legalhold", held),
        ("immutabilitypolicy,legalhold", words | held),
    ):
        found = properties(blob(page(box.client, "box", include=include), "b"))
        named = {name: found[name] for name in (*words, *held) if name in found}
        assert named == wanted


def test_a_legal_hold_is_set_and_cleared(box: Box) -> None:
    """B-IMM-08."""
    made = put(box.client, "/box/b")
    until = expect(box.policy("/box/b"), 200)[UNTIL]
    for value in ("true", "false", "TRUE"):
        assert expect(box.hold("/box/b", value), 200)[HOLD] == value.lower()
        held = "true" if value.lower() == "true" else None
        assert box.protection("/box/b") == (until, "unlocked", held)
    assert box.client.head("/box/b").etag == made.etag
    missing = box.client.put("/box/b?comp=legalhold")
    expect_names(missing, 400, "MissingRequiredHeader", HOLD)
    expect_names(box.hold("/box/b", "maybe"), 400, "InvalidHeaderValue", HOLD)


@pytest.mark.parametrize("seconds", [0, -1, 146_001 * DAY_S])
def test_dates_that_a_policy_cannot_have(box: Box, seconds: float) -> None:
    """B-IMM-04, B-IMM-17."""
    put(box.client, "/box/b")
    expect_names(box.policy("/box/b", seconds), 400, "InvalidHeaderValue", UNTIL)
    headers = {**PUT_BLOB, UNTIL: box.date(seconds)}
    expect_names(box.client.put("/box/b", headers, b"x"), 400, "InvalidHeaderValue", UNTIL)
    assert box.protection("/box/b") == (None, None, None)


def test_headers_that_a_policy_cannot_have(box: Box) -> None:
    """B-IMM-04, B-IMM-17."""
    put(box.client, "/box/b")
    target = "/box/b?comp=immutabilityPolicies"
    for headers, name in (({}, UNTIL), ({MODE: "Locked"}, UNTIL)):
        missing = box.client.put(target, headers)
        expect_names(missing, 400, "MissingRequiredHeader", name)
    alone = box.client.put("/box/b", {**PUT_BLOB, MODE: "Locked"}, b"x")
    expect_names(alone, 400, "MissingRequiredHeader", UNTIL)
    for headers, name in (
        ({UNTIL: "tomorrow"}, UNTIL),
        ({UNTIL: box.date(DAY_S), MODE: "Mutable"}, MODE),
    ):
        expect_names(box.client.put(target, headers), 400, "InvalidHeaderValue", name)
        both = box.client.put("/box/b", {**PUT_BLOB, **headers}, b"x")
        expect_names(both, 400, "InvalidHeaderValue", name)


def test_how_policies_change(box: Box) -> None:
    """B-IMM-06, B-IMM-07."""
    put(box.client, "/box/b")
    expect(box.unprotect("/box/b"), 200)
    for seconds in (2 * DAY_S, DAY_S):
        expect(box.policy("/box/b", seconds), 200)
    expect(box.hold("/box/b"), 200)
    expect(box.unprotect("/box/b"), 200)
    assert box.protection("/box/b") == (None, None, "true")
    expect(box.policy("/box/b", DAY_S, "Locked"), 200)
    for days in range(2, 9):
        expect(box.policy("/box/b", days * DAY_S, "Locked"), 200)
    expect(box.policy("/box/b", DAY_S, "Locked"), 409, IMMUTABLE)
    expect(box.policy("/box/b", 9 * DAY_S), 409, IMMUTABLE)
    expect(box.unprotect("/box/b"), 409, IMMUTABLE)
    assert box.protection("/box/b")[1:] == ("locked", "true")


def paged(box: Box, target: str, headers: dict[str, str]) -> Answer:
    """Put Blob (page), served or not."""
    sized = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
    return box.client.put(target, {**sized, **headers})


Change = Callable[[Box], Answer]


def _over(kind: str) -> Change:
    return lambda box: box.client.put("/box/b", {"x-ms-blob-type": kind}, b"")


def _copied(headers: dict[str, str] | None = None) -> Change:
    def run(box: Box) -> Answer:
        put(box.client, "/box/source")
        return copy(box.client, source_url(box.client, "/box/source"), "/box/b", headers)

    return run


def _from_url(box: Box) -> Answer:
    put(box.client, "/box/source")
    return copy(box.client, source_url(box.client, "/box/source"), "/box/b", PUT_BLOB)


def _listed(box: Box) -> Answer:
    expect(stage(box.client, "/box/b", "1", b"x"), 201)
    return box.client.put("/box/b?comp=blocklist", body=block_list("1"))


CHANGES: dict[str, Change] = {
    "put": lambda box: box.client.put("/box/b", PUT_BLOB, b"x"),
    "put append": _over("AppendBlob"),
    "put page": lambda box: paged(box, "/box/b", {}),
    "from url": _from_url,
    "block list": _listed,
    "copy": _copied(),
    "copy from url": _copied(SYNC),
    "properties": lambda box: box.client.put(
        "/box/b?comp=properties", {"x-ms-blob-content-type": "text/plain"}
    ),
    "metadata": lambda box: box.client.put("/box/b?comp=metadata", {"x-ms-meta-a": "b"}),
    "delete": lambda box: box.client.delete("/box/b"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_refused(box: Box, name: str) -> None:
    """B-IMM-11, B-IMM-12, B-IMM-13: under a hold, a policy, and an expired one."""
    change = CHANGES[name]
    put(box.client, "/box/b")
    expect(box.policy("/box/b"), 200)
    before = seen(box.client, "/box/b")
    expect(change(box), 409, IMMUTABLE)
    expect(box.hold("/box/b"), 200)
    expect(change(box), 409, HELD)
    box.server.advance(DAY_S)
    expect(change(box), 409, HELD)
    expect(box.hold("/box/b", "false"), 200)
    if name != "delete":
        expect(change(box), 409, IMMUTABLE)
        assert seen(box.client, "/box/b") == before
        expect(box.unprotect("/box/b"), 200)
    assert change(box).status in (200, 201, 202)


def test_appends_and_pages_are_refused(box: Box) -> None:
    """B-IMM-11, B-IMM-14: the changes of append and page blobs."""
    appending.create(box.client, "/box/a")
    pages.create(box.client, "/box/p", 1024)
    for target in ("/box/a", "/box/p"):
        expect(box.hold(target), 200)
    expect(appending.append(box.client, "/box/a", b"x"), 409, HELD)
    expect(appending.seal(box.client, "/box/a"), 200)
    expect(pages.send(box.client, "/box/p", 0, bytes(512)), 409, HELD)
    cleared = {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}
    expect(box.client.put("/box/p?comp=page", cleared), 409, HELD)
    resized = box.client.put("/box/p?comp=properties", {"x-ms-blob-content-length": "512"})
    expect(resized, 409, HELD)
    numbered = {"x-ms-sequence-number-action": "increment"}
    expect(box.client.put("/box/p?comp=properties", numbered), 409, HELD)


def test_what_passes(box: Box) -> None:
    """B-IMM-10, B-IMM-14."""
    put(box.client, "/box/b")
    expect(box.policy("/box/b"), 200)
    expect(box.hold("/box/b"), 200)
    assert body(box.client, "/box/b") == b"content"
    expect(box.client.put("/box/b?comp=tier", {"x-ms-access-tier": "Cool"}), 200)
    tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>"
    expect(box.client.put("/box/b?comp=tags", body=tags), 204)
    taken = f"/box/b?snapshot={snapshot(box.client, '/box/b')}"
    assert box.protection(taken) == (None, None, None)
    expect(stage(box.client, "/box/b", "1", b"x"), 201)
    leased = Leased(box.server, box.client, "/box/b")
    leased.acquire()
    expect(box.policy("/box/b", 2 * DAY_S), 200)
    expect(box.client.delete(taken), 202)


def test_a_snapshot_is_protected_by_itself(box: Box) -> None:
    """B-IMM-10, B-IMM-15: also where deleted blobs are kept."""
    put(box.client, "/box/b")
    taken = f"/box/b?snapshot={snapshot(box.client, '/box/b')}"
    until = expect(box.policy(taken), 200)[UNTIL]
    expect(box.hold(taken), 200)
    assert box.protection(taken) == (until, "unlocked", "true")
    assert box.protection("/box/b") == (None, None, None)
    kept = (
        b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
        b"</DeleteRetentionPolicy></StorageServiceProperties>"
    )
    for retention in (None, kept):
        if retention is not None:
            target = "/?restype=service&comp=properties"
            expect(box.client.put(target, body=retention), 202)
        expect(box.client.delete(taken), 409, HELD)
        for word in ("include", "only"):
            expect(box.client.delete("/box/b", {"x-ms-delete-snapshots": word}), 409, HELD)
    put(box.client, "/box/b", b"new")
    expect(box.hold("/box/b"), 200)
    expect(box.client.put("/box/b", PUT_BLOB, b"x"), 409, HELD)
    expect(box.client.delete("/box/b", {"x-ms-delete-snapshots": "include"}), 409, HELD)
    expect(box.hold(taken, "false"), 200)
    expect(box.unprotect(taken), 200)
    expect(box.client.delete(taken), 202)


def test_nothing_to_protect(box: Box) -> None:
    """B-IMM-10."""
    expect(stage(box.client, "/box/staged", "1", b"x"), 201)
    put(box.client, "/box/b")
    for target in ("/box/staged", "/box/none", "/box/b?snapshot=2020-01-02T03:04:05.1234567Z"):
        for ask in (box.policy, box.hold, box.unprotect):
            expect(ask(target), 404, "BlobNotFound")


def test_conditions_of_a_policy(box: Box) -> None:
    """B-IMM-09."""
    made = put(box.client, "/box/b")
    old = "Fri, 26 Jun 2015 23:39:12 GMT"
    expect(box.policy("/box/b", more={"If-Unmodified-Since": old}), 412, "ConditionNotMet")
    expect(box.policy("/box/b", more={"If-Unmodified-Since": made["Last-Modified"]}), 200)
    for headers in ({"If-Match": made.etag}, {"If-Modified-Since": old}, {"x-ms-if-tags": "a='b'"}):
        expect(box.policy("/box/b", more=headers), 400, "ConditionHeadersNotSupported")
    refused = box.client.put("/box/b?comp=legalhold", {HOLD: "true", "If-Unmodified-Since": old})
    expect(refused, 400, "ConditionHeadersNotSupported")
    refused = box.client.delete("/box/b?comp=immutabilityPolicies", {"If-Match": made.etag})
    expect(refused, 400, "ConditionHeadersNotSupported")


def test_what_is_judged_before_the_protection(box: Box) -> None:
    """B-IMM-16."""
    put(box.client, "/box/b")
    expect(box.hold("/box/b"), 200)
    leased = Leased(box.server, box.client, "/box/b")
    leased.acquire()
    expect(box.client.delete("/box/b"), 412, "LeaseIdMissing")
    held = {"x-ms-lease-id": A}
    unmet = {**held, "If-Match": '"0x1"'}
    expect(box.client.put("/box/b?comp=metadata", unmet), 412, "ConditionNotMet")
    expect(box.client.put("/box/b?comp=tier", {"x-ms-access-tier": "Archive"}), 200)
    expect(box.client.put("/box/b?comp=metadata", held), 409, "BlobArchived")
    expect(box.client.delete("/box/b", held), 409, HELD)


WRITES: dict[str, Callable[[Box, dict[str, str]], Answer]] = {
    "put": lambda box, headers: box.client.put("/box/n", {**PUT_BLOB, **headers}, b"content"),
    "append": lambda box, headers: box.client.put(
        "/box/n", {"x-ms-blob-type": "AppendBlob", **headers}
    ),
    "page": lambda box, headers: paged(box, "/box/n", headers),
    "list": lambda box, headers: box.client.put("/box/n?comp=blocklist", headers, block_list()),
    "copy": lambda box, headers: copy(
        box.client, source_url(box.client, "/box/source"), "/box/n", headers
    ),
    "sync": lambda box, headers: copy(
        box.client, source_url(box.client, "/box/source"), "/box/n", {**SYNC, **headers}
    ),
    "url": lambda box, headers: copy(
        box.client, source_url(box.client, "/box/source"), "/box/n", {**PUT_BLOB, **headers}
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_protects_its_blob(box: Box, name: str) -> None:
    """B-IMM-17, B-IMM-02."""
    put(box.client, "/box/source")
    expect(box.policy("/box/source"), 200)
    write, until = WRITES[name], box.date(DAY_S)
    assert write(box, {HOLD: "false"}).status in (201, 202)
    assert box.protection("/box/n") == (None, None, None)
    headers = {UNTIL: until, MODE: "Locked", HOLD: "true"}
    assert write(box, headers).status in (201, 202)
    assert box.protection("/box/n") == (until, "locked", "true")
    expect(write(box, {}), 409, HELD)


@pytest.mark.parametrize("name", WRITES)
def test_protection_where_it_is_off(server: Running, account: Client, name: str) -> None:
    """B-IMM-01, B-IMM-02, B-CON-03."""
    box = Box(server, account)
    put(account, "/box/source")
    name_enabled = "x-ms-immutable-storage-with-versioning-enabled"
    assert account.head("/box?restype=container")[name_enabled] == "false"
    assert WRITES[name](box, {HOLD: "false"}).status in (201, 202)
    for headers in ({HOLD: "true"}, {UNTIL: box.date(DAY_S)}):
        expect(WRITES[name](box, headers), 409, OFF)
    expect(box.policy("/box/n"), 409, OFF)
    expect(box.hold("/box/n"), 409, OFF)
    expect(box.hold("/box/n", "false"), 200)
    expect(box.unprotect("/box/n"), 200)
    server.switch(account.account, immutability=True)
    assert account.head("/box?restype=container")[name_enabled] == "true"
    expect(box.hold("/box/n"), 200)


def test_a_sas_needs_the_permission(box: Box) -> None:
    """B-IMM-18."""
    put(box.client, "/box/b")
    anyone = box.client.anonymous
    for letters, status in (("racwdt", 403), ("i", 200), ("cwi", 200)):
        for token in (
            service_sas(box.client.credential, "box", sp=letters),
            account_sas(box.client.credential, sp=letters, srt="o"),
        ):
            policy = {UNTIL: box.date(DAY_S)}
            code = None if status == 200 else "AuthorizationPermissionMismatch"
            target = f"/box/b?comp=immutabilityPolicies&{token}"
            expect(anyone.put(target, policy), status, code)
            expect(anyone.put(f"/box/b?comp=legalhold&{token}", {HOLD: "false"}), status, code)
            expect(anyone.delete(target), status, code)
            if letters != "i":
                protected = anyone.put(f"/box/new?{token}", {**PUT_BLOB, **policy}, b"x")
                expect(protected, 201 if status == 200 else 403, code)
                assert box.unprotect("/box/new").status == (404 if status == 403 else 200)


def test_the_deletion_of_a_container(box: Box) -> None:
    """B-IMM-19."""
    target = "/box?restype=container"
    put(box.client, "/box/b")
    expect(box.client.delete(target), 409, "ContainerProtectedFromDeletion")
    leased = Leased(box.server, box.client, target)
    leased.acquire()
    expect(box.client.delete(target), 412, "LeaseIdMissing")
    expect(box.client.delete("/box/b"), 202)
    expect(box.client.delete(target, {"x-ms-lease-id": A}), 202)


def test_the_sdk_sets_and_clears(box: Box) -> None:
    """B-IMM-03, B-IMM-07, B-IMM-08."""
    credential = {
        "account_name": box.client.credential.account,
        "account_key": box.client.credential.key,
    }
    sdk = BlobClient(box.client.url, "box", "b", credential=credential, retry_total=0)
    # Other tests have moved store time by years.
    until = datetime.now(UTC) + timedelta(days=20_000)
    policy = ImmutabilityPolicy(expiry_time=until, policy_mode="Unlocked")
    sdk.upload_blob(b"x", immutability_policy=policy, legal_hold=True)
    found = sdk.get_blob_properties()
    assert found.has_legal_hold and found.immutability_policy.policy_mode == "unlocked"
    with pytest.raises(ResourceExistsError):
        sdk.delete_blob()
    sdk.set_legal_hold(False)
    sdk.set_immutability_policy(policy)
    sdk.delete_immutability_policy()
    sdk.delete_blob()
