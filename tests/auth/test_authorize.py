"""Authorization: every claim against the permissions of operations, with the exact refusals."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.auth.authorize import (
    NO_OVERRIDES,
    Grant,
    Overrides,
    Permission,
    authorize,
)
from strongroom.auth.claims import Anonymous, Claim, SasClaim, SasKind, SharedKeyClaim
from strongroom.auth.refusals import CHALLENGE
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import Sas
from strongroom.errors.core import (
    AUTHENTICATION_FAILED,
    AUTHORIZATION_FAILURE,
    AUTHORIZATION_PERMISSION_MISMATCH,
    AUTHORIZATION_PROTOCOL_MISMATCH,
    AUTHORIZATION_RESOURCE_TYPE_MISMATCH,
    AUTHORIZATION_SERVICE_MISMATCH,
    AUTHORIZATION_SOURCE_IPMISMATCH,
    INVALID_QUERY_PARAMETER_VALUE,
    NO_AUTHENTICATION_INFORMATION,
    RESOURCE_NOT_FOUND,
    ErrorCode,
    StorageError,
)
from strongroom.values import AccessPolicy, PublicAccess
from tests.auth.signing import BLOB, CONTAINER, NAME, NOW, refused
from tests.refusals import outcome, refusal

ROOT = Target(Service.BLOB, NAME)
OWNER = SharedKeyClaim(NAME)
NOBODY = Anonymous(NAME)
POLICIES = (AccessPolicy("p", None, "2099-01-01", "r"),)

# Some operations as in the Azure tables: the tests' own declarations, not the project's.
PUT_BLOB = Permission(sas=("c", "w"), account_sas=("o", ("c", "w")))
GET_BLOB = Permission(sas=("r",), account_sas=("o", ("r",)), public=PublicAccess.BLOB)
LIST_BLOBS = Permission(sas=("l",), account_sas=("c", ("l",)), public=PublicAccess.CONTAINER)
GET_CONTAINER = Permission(account_sas=("c", ("r",)), public=PublicAccess.CONTAINER)
CREATE_CONTAINER = Permission(account_sas=("c", ("c", "w")))
LIST_CONTAINERS = Permission(account_sas=("s", ("l",)))
SET_ACL = Permission(no_sas=True)
DELETE_BLOB = Permission(sas=("d",), account_sas=("o", ("d",)))
BREAK_LEASE = Permission(
    sas=("w", "d"), account_sas=("o", ("w", "d")), letters_since=(("d", "2017-07-29"),)
)
UPSERT = Permission(sas=("au",), account_sas=("o", ("au",)))


def _authorize(
    claim: Claim,
    needs: Permission,
    target: Target = BLOB,
    access: PublicAccess = PublicAccess.NONE,
    peer: str = "127.0.0.1",
    tls: bool = False,
    version: str | None = "2021-12-02",
    now: int = NOW,
) -> Grant:
    return authorize(claim, needs, target, access, POLICIES, now, peer, tls, version)


def _refusal(row: ErrorCode, claim: Claim, needs: Permission, **arguments: Any) -> str:
    with pytest.raises(StorageError) as caught:
        _authorize(claim, needs, **arguments)
    return refused(caught, row)


def _service(sr: str = "b", target: Target = BLOB, /, **fields: str) -> SasClaim:
    values = {"sv": "2021-12-02", "sp": "r", "se": "2099-01-01", **fields}
    return SasClaim(NAME, SasKind.SERVICE, Sas(sr=sr, sig="s", **values), target)


def _account(sp: str, srt: str = "sco", ss: str = "b", **fields: str) -> SasClaim:
    values = {"sv": "2021-12-02", "se": "2099-01-01", **fields}
    return SasClaim(NAME, SasKind.ACCOUNT, Sas(sp=sp, srt=srt, ss=ss, sig="s", **values), BLOB)


class TestOwner:
    @pytest.mark.parametrize("needs", [PUT_BLOB, SET_ACL, LIST_CONTAINERS, Permission()])
    def test_the_key_does_everything(self, needs: Permission) -> None:
        grant = _authorize(OWNER, needs)
        assert grant.may_overwrite
        assert set(grant.letters) >= set("racwdl")
        assert grant.overrides == NO_OVERRIDES

    def test_in_its_own_account_only(self) -> None:
        claim = SharedKeyClaim("another")
        assert "'another'" in _refusal(AUTHORIZATION_FAILURE, claim, GET_BLOB)


class TestServiceSas:
    @pytest.mark.parametrize(
        ("needs", "letters", "allowed"),
        [
            (PUT_BLOB, "c", True),
            (PUT_BLOB, "w", True),
            (PUT_BLOB, "rald", False),
            (GET_BLOB, "r", True),
            (GET_BLOB, "w", False),
            (DELETE_BLOB, "d", True),
            (DELETE_BLOB, "rw", False),
            (BREAK_LEASE, "d", True),
            (BREAK_LEASE, "w", True),
            (UPSERT, "au", True),
            (UPSERT, "a", False),
            (UPSERT, "u", False),
        ],
    )
    def test_the_letters(self, needs: Permission, letters: str, allowed: bool) -> None:
        claim = _service(sp=letters)
        if allowed:
            assert _authorize(claim, needs).letters == letters
        else:
            message = _refusal(AUTHORIZATION_PERMISSION_MISMATCH, claim, needs)
            assert f"'{letters}'" in message

    @pytest.mark.parametrize(("letters", "may"), [("c", False), ("cw", True), ("w", True)])
    def test_create_alone_does_not_overwrite(self, letters: str, may: bool) -> None:
        assert _authorize(_service(sp=letters), PUT_BLOB).may_overwrite is may
        assert _authorize(_account(letters), PUT_BLOB).may_overwrite is may

    def test_a_letter_counts_from_its_version(self) -> None:
        claim = _service(sp="d", sv="2017-04-17")
        _refusal(AUTHORIZATION_PERMISSION_MISMATCH, claim, BREAK_LEASE)
        assert _authorize(_service(sp="wd", sv="2017-04-17"), BREAK_LEASE).letters == "wd"
        assert _authorize(_service(sp="d", sv="2017-07-29"), BREAK_LEASE).letters == "d"

    @pytest.mark.parametrize("needs", [GET_CONTAINER, CREATE_CONTAINER, SET_ACL, LIST_CONTAINERS])
    def test_never_the_container_itself(self, needs: Permission) -> None:
        claim = _service("c", CONTAINER, sp="racwdxyltfmeopi")
        detail = _refusal(AUTHORIZATION_FAILURE, claim, needs, target=CONTAINER)
        assert "SAS can permit" in detail

    def test_a_container_token_lists_and_reaches_its_blobs(self) -> None:
        claim = _service("c", CONTAINER, sp="rl")
        assert _authorize(claim, LIST_BLOBS, target=CONTAINER).letters == "rl"
        assert _authorize(claim, GET_BLOB, target=BLOB).letters == "rl"

    @pytest.mark.parametrize(
        "target",
        [
            Target(Service.BLOB, NAME, "c2", "b1"),
            Target(Service.BLOB, NAME),
            Target(Service.QUEUE, NAME, "c1"),
        ],
    )
    def test_a_container_token_ends_at_its_container(self, target: Target) -> None:
        claim = _service("c", CONTAINER)
        detail = _refusal(AUTHORIZATION_FAILURE, claim, GET_BLOB, target=target)
        assert "was issued for another resource" in detail

    @pytest.mark.parametrize("sr", ["b", "bs", "bv"])
    @pytest.mark.parametrize(
        "target",
        [
            CONTAINER,
            Target(Service.BLOB, NAME, "c1", "b2"),
            Target(Service.BLOB, NAME, "c1", "b1", snapshot="S"),
            Target(Service.BLOB, NAME, "c1", "b1", version_id="V"),
        ],
    )
    def test_a_claim_is_good_for_its_own_target(self, sr: str, target: Target) -> None:
        _refusal(AUTHORIZATION_FAILURE, _service(sr), GET_BLOB, target=target)
        assert _authorize(_service(sr), GET_BLOB, target=BLOB).letters

    def test_a_directory_token_ends_at_its_directory(self) -> None:
        def blob(name: str) -> Target:
            return Target(Service.BLOB, NAME, "c1", name)

        claim = _service("d", blob("a/b/c"), sdd="2")
        assert _authorize(claim, GET_BLOB, target=blob("a/b/d")).letters
        _refusal(AUTHORIZATION_FAILURE, claim, GET_BLOB, target=blob("a/c"))
        _refusal(AUTHORIZATION_FAILURE, claim, GET_BLOB, target=CONTAINER)

    def test_a_queue_token(self) -> None:
        queue = Target(Service.QUEUE, NAME, "q", "messages")
        needs = Permission(sas=("p",), account_sas=("o", ("p",)))
        assert _authorize(_service("", queue, sp="rp"), needs, target=queue).letters == "rp"


class TestAccountSas:
    @pytest.mark.parametrize(
        ("needs", "sp", "srt", "target"),
        [
            (LIST_CONTAINERS, "l", "s", ROOT),
            (CREATE_CONTAINER, "c", "c", CONTAINER),
            (CREATE_CONTAINER, "w", "sco", CONTAINER),
            (GET_CONTAINER, "r", "c", CONTAINER),
            (LIST_BLOBS, "l", "c", CONTAINER),
            (PUT_BLOB, "c", "o", BLOB),
            (GET_BLOB, "r", "o", BLOB),
            (DELETE_BLOB, "d", "o", BLOB),
            (UPSERT, "rau", "o", BLOB),
        ],
    )
    def test_what_it_reaches(self, needs: Permission, sp: str, srt: str, target: Target) -> None:
        assert _authorize(_account(sp, srt), needs, target=target).letters == sp

    @pytest.mark.parametrize(
        ("needs", "claim", "row", "says"),
        [
            (GET_BLOB, _account("r", ss="qtf"), AUTHORIZATION_SERVICE_MISMATCH, "ss=b"),
            (GET_BLOB, _account("r", srt="sc"), AUTHORIZATION_RESOURCE_TYPE_MISMATCH, "srt=o"),
            (LIST_BLOBS, _account("l", srt="so"), AUTHORIZATION_RESOURCE_TYPE_MISMATCH, "srt=c"),
            (LIST_CONTAINERS, _account("l", srt="co"), AUTHORIZATION_RESOURCE_TYPE_MISMATCH, "s "),
            (GET_BLOB, _account("w"), AUTHORIZATION_PERMISSION_MISMATCH, "sp=r"),
            (PUT_BLOB, _account("r"), AUTHORIZATION_PERMISSION_MISMATCH, "sp=c or w"),
            (UPSERT, _account("a"), AUTHORIZATION_PERMISSION_MISMATCH, "sp=au"),
            (SET_ACL, _account("rwdlacup"), AUTHORIZATION_FAILURE, "account key"),
            (Permission(), _account("rwdlacup"), AUTHORIZATION_FAILURE, "No account SAS"),
        ],
    )
    def test_what_it_lacks(
        self, needs: Permission, claim: SasClaim, row: ErrorCode, says: str
    ) -> None:
        assert says in _refusal(row, claim, needs)

    def test_for_another_account(self) -> None:
        claim = SasClaim("another", SasKind.ACCOUNT, _account("r").sas, BLOB)
        assert "'another'" in _refusal(AUTHORIZATION_FAILURE, claim, GET_BLOB)

    def test_it_is_good_for_other_blobs_than_the_one_it_came_with(self) -> None:
        assert _authorize(
            _account("r"), GET_BLOB, target=Target(Service.BLOB, NAME, "c9", "b9")
        ).letters


class TestTimesAndPolicies:
    @pytest.mark.parametrize(
        ("fields", "says"),
        [
            ({"se": "2015-06-26T23:39:12Z"}, "has expired"),
            ({"st": "2015-06-26T23:39:13Z"}, "not valid yet"),
            ({"se": ""}, "no expiry"),
            ({"sp": ""}, "no permission"),
            ({"se": "", "sp": "", "si": "gone"}, "cannot be found"),
        ],
    )
    def test_they_are_judged(self, fields: dict[str, str], says: str) -> None:
        assert says in _refusal(AUTHENTICATION_FAILED, _service(**fields), GET_BLOB)

    def test_the_policy_grants(self) -> None:
        claim = _service("c", CONTAINER, sp="", se="", si="p")
        assert _authorize(claim, GET_BLOB).letters == "r"
        _refusal(AUTHORIZATION_PERMISSION_MISMATCH, claim, PUT_BLOB)

    def test_a_field_in_both(self) -> None:
        claim = _service("c", CONTAINER, si="p", se="")
        found = refusal(lambda: _authorize(claim, GET_BLOB))
        assert found is not None and found.row == INVALID_QUERY_PARAMETER_VALUE
        assert ("QueryParameterName", "sp") in found.extras


class TestOrigin:
    @pytest.mark.parametrize(
        ("spr", "tls"), [("https", True), ("https,http", False), ("http,https", False), ("", False)]
    )
    def test_the_protocol_is_allowed(self, spr: str, tls: bool) -> None:
        assert _authorize(_service(spr=spr), GET_BLOB, tls=tls).letters
        assert _authorize(_service(spr=spr), GET_BLOB, tls=True).letters

    def test_https_only(self) -> None:
        for claim in (_service(spr="https"), _account("r", spr="https")):
            assert "spr=https" in _refusal(AUTHORIZATION_PROTOCOL_MISMATCH, claim, GET_BLOB)

    @pytest.mark.parametrize(
        ("sip", "peer", "allowed"),
        [
            ("168.1.5.65", "168.1.5.65", True),
            ("168.1.5.65", "168.1.5.66", False),
            ("168.1.5.60-168.1.5.70", "168.1.5.60", True),
            ("168.1.5.60-168.1.5.70", "168.1.5.70", True),
            ("168.1.5.60-168.1.5.70", "168.1.5.59", False),
            ("168.1.5.60-168.1.5.70", "168.1.5.71", False),
            ("9.0.0.0-10.0.0.0", "9.255.0.1", True),
            ("127.0.0.1", "::ffff:127.0.0.1", True),
            ("127.0.0.1", "::1", False),
            ("127.0.0.1", "fe80::1%eth0", False),
            ("127.0.0.1", "", False),
        ],
    )
    def test_the_address(self, sip: str, peer: str, allowed: bool) -> None:
        if allowed:
            assert _authorize(_service(sip=sip), GET_BLOB, peer=peer).letters
            return
        message = _refusal(AUTHORIZATION_SOURCE_IPMISMATCH, _service(sip=sip), GET_BLOB, peer=peer)
        assert f"source IP {peer}." in message


RSC = {"rscc": "CC", "rscd": "CD", "rsce": "CE", "rscl": "CL", "rsct": "CT"}


class TestOverrides:
    @pytest.mark.parametrize("sv", ["2013-08-15", "2015-02-21", "2021-12-02"])
    def test_they_are_exposed(self, sv: str) -> None:
        grant = _authorize(_service(sv=sv, **RSC), GET_BLOB)
        assert grant.overrides == Overrides("CC", "CD", "CE", "CL", "CT")

    def test_what_no_signature_covers_is_ignored(self) -> None:
        assert _authorize(_account("r", **RSC), GET_BLOB).overrides == NO_OVERRIDES
        old = _service(sv="2012-02-12", **RSC)
        assert _authorize(old, GET_BLOB).overrides == NO_OVERRIDES


class TestAnonymous:
    @pytest.mark.parametrize(
        ("needs", "access", "letters"),
        [
            (GET_BLOB, PublicAccess.BLOB, "r"),
            (GET_BLOB, PublicAccess.CONTAINER, "rl"),
            (LIST_BLOBS, PublicAccess.CONTAINER, "rl"),
            (GET_CONTAINER, PublicAccess.CONTAINER, "rl"),
        ],
    )
    def test_public_access(self, needs: Permission, access: PublicAccess, letters: str) -> None:
        granted = _authorize(NOBODY, needs, access=access)
        assert granted == Grant(letters, False, anonymous=True, may_tag=False, may_protect=False)

    REFUSED = (
        (GET_BLOB, PublicAccess.NONE),
        (LIST_BLOBS, PublicAccess.NONE),
        (LIST_BLOBS, PublicAccess.BLOB),
        (GET_CONTAINER, PublicAccess.BLOB),
        (PUT_BLOB, PublicAccess.CONTAINER),
        (SET_ACL, PublicAccess.CONTAINER),
        (LIST_CONTAINERS, PublicAccess.CONTAINER),
    )

    @pytest.mark.parametrize(("needs", "access"), REFUSED)
    @pytest.mark.parametrize("version", [None, "2009-09-19", "2019-10-10"])
    def test_what_is_not_public_does_not_exist(
        self, needs: Permission, access: PublicAccess, version: str | None
    ) -> None:
        detail = _refusal(RESOURCE_NOT_FOUND, NOBODY, needs, access=access, version=version)
        assert detail == RESOURCE_NOT_FOUND.message

    @pytest.mark.parametrize(("needs", "access"), REFUSED)
    @pytest.mark.parametrize("version", ["2019-12-12", "2026-10-06"])
    def test_newer_versions_are_challenged(
        self, needs: Permission, access: PublicAccess, version: str
    ) -> None:
        with pytest.raises(StorageError) as caught:
            _authorize(NOBODY, needs, access=access, version=version)
        refused(caught, NO_AUTHENTICATION_INFORMATION)
        assert caught.value.headers == (("WWW-Authenticate", CHALLENGE),)

    def test_the_challenge_is_what_the_sdk_reads(self) -> None:
        from azure.storage.blob._shared.authentication import StorageHttpChallenge

        challenge: Any = StorageHttpChallenge
        read = challenge(CHALLENGE)
        assert (read.scheme, read.tenant_id) == ("Bearer", "common")
        assert read.resource_id == "https://storage.azure.com"

    @pytest.mark.parametrize("service", [Service.QUEUE, Service.TABLE, Service.FILE])
    def test_elsewhere_nothing_is_public(self, service: Service) -> None:
        target = Target(service, NAME, "c1")

        def refused_as(version: str | None) -> str:
            public = PublicAccess.CONTAINER
            return outcome(lambda: _authorize(NOBODY, GET_BLOB, target, public, version=version))

        assert refused_as(None) == "403 AuthenticationFailed"
        assert refused_as("2021-12-02") == "401 NoAuthenticationInformation"


class TestDeclarations:
    def test_a_resource_type_must_exist(self) -> None:
        with pytest.raises(ValueError, match="not among s, c, o"):
            Permission(account_sas=("b", ("r",)))

    def test_no_sas_means_no_letters_of_one(self) -> None:
        with pytest.raises(ValueError, match="no SAS permits"):
            Permission(sas=("r",), no_sas=True)
        with pytest.raises(ValueError, match="no SAS permits"):
            Permission(account_sas=("o", ("r",)), no_sas=True)
