"""Authorization: decides once per operation whether the caller may run it.

It checks times, addresses, stored policies, permissions and public access. Source: "Create a
service SAS" and "Create an account SAS" (permission tables), "Define a stored access policy",
"Anonymous read access", "Azure Storage REST error codes".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from strongroom.auth import delegation, roles
from strongroom.auth.claims import (
    Anonymous,
    BearerClaim,
    Claim,
    SasClaim,
    SasKind,
    SharedKeyClaim,
)
from strongroom.auth.policies import judge_times, resolve
from strongroom.auth.refusals import authentication_failed
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import PERMISSION_LETTERS, SCOPE_SINCE, Sas, parse_addresses
from strongroom.auth.sas_signature import directory_of
from strongroom.errors.core import (
    AUTHORIZATION_FAILURE,
    AUTHORIZATION_PERMISSION_MISMATCH,
    AUTHORIZATION_PROTOCOL_MISMATCH,
    AUTHORIZATION_RESOURCE_TYPE_MISMATCH,
    AUTHORIZATION_SERVICE_MISMATCH,
    AUTHORIZATION_SOURCE_IPMISMATCH,
    NO_AUTHENTICATION_INFORMATION,
    RESOURCE_NOT_FOUND,
    ErrorCode,
    StorageError,
)
from strongroom.values import AccessPolicy, PublicAccess

CHALLENGE_SINCE: Final = "2019-12-12"
# A constant, since an attribute access on an enumeration costs a call in Python 3.11.
_ACCOUNT: Final = SasKind.ACCOUNT
_RESOURCE_TYPES: Final = {"s": "service", "c": "container", "o": "object"}
_OVERRIDES_SINCE: Final = {Service.BLOB: "2013-08-15", Service.FILE: "2015-02-21"}


class Permission(msgspec.Struct, frozen=True, cache_hash=True):
    """The permission that an operation needs. The owner of an account key may do everything.

    Attributes:
        account_sas: (resource types among `sco`, alternatives); one of each is enough. None = an
            account SAS never permits it.
        sas: alternatives for a service or user delegation SAS, of which one is enough. An
            alternative is one letter, or several that are needed together (`au`). None = such a SAS
            never permits it.
        public: the least public access of the container that permits it to anonymous callers; NONE
            = never.
        no_sas: no SAS permits it, not even one whose delegator may do it (access control lists).
        letters_since: (letter, version): the letter counts only in tokens with `sv` from that
            version.
        actions: alternatives for the caller's roles (roles.py), of which one is enough; empty = a
            role never permits it. The delegator of a user delegation SAS needs one too.
        anywhere: a role on any resource of the account is enough, since the parts of the request
            are authorized separately (batches).
        bearer_only: only a bearer token permits it, by a role of its user, not of a group (user
            delegation keys).
    """

    account_sas: tuple[str, tuple[str, ...]] | None = None
    sas: tuple[str, ...] | None = None
    public: PublicAccess = PublicAccess.NONE
    no_sas: bool = False
    letters_since: tuple[tuple[str, str], ...] = ()
    actions: tuple[str, ...] = ()
    anywhere: bool = False
    bearer_only: bool = False

    def __post_init__(self) -> None:
        unknown = {one for text in self.actions for one in text.split()} - roles.ACTIONS
        if unknown:
            raise ValueError(f"no role has the actions {sorted(unknown)}")
        if self.account_sas is not None and not set(self.account_sas[0]) <= _RESOURCE_TYPES.keys():
            raise ValueError(f"resource types {self.account_sas[0]!r} are not among s, c, o")
        if self.no_sas and (self.account_sas is not None or self.sas is not None):
            raise ValueError("an operation that no SAS permits cannot name letters of one")


class Overrides(msgspec.Struct, frozen=True):
    """Response headers that a SAS sets on Get Blob and Get Blob Properties; "" = not set."""

    cache_control: str = ""
    content_disposition: str = ""
    content_encoding: str = ""
    content_language: str = ""
    content_type: str = ""


NO_OVERRIDES: Final = Overrides()


class KeyRange(msgspec.Struct, frozen=True):
    """The entities that a table SAS covers: (PartitionKey, RowKey) of the first and the last one.
    Both ends are inclusive; None means an open end. A row key of None means the whole partition."""

    first: tuple[str, str | None] | None
    last: tuple[str, str | None] | None

    def contains(self, partition_key: str, row_key: str) -> bool:
        if self.first is not None:
            partition, row = self.first
            if (partition_key, row_key if row is not None else "") < (partition, row or ""):
                return False
        if self.last is not None:
            partition, row = self.last
            if partition_key > partition:
                return False
            return partition_key < partition or row is None or row_key <= row
        return True


class Grant(msgspec.Struct, frozen=True):
    """The rights that a caller was granted.

    Attributes:
        letters: the permissions that the caller holds, not only those that the operation needed.
        may_overwrite: a write may replace what exists (`c` alone only creates).
        anonymous: the rights come from public access alone.
        key_range: the entities that the token covers; None = all.
        may_tag: the caller may read and write blobs' tags beside their contents.
        may_protect: a write may give a blob an immutability policy or a legal hold.
        scope: the encryption scope of the token's writes (`ses`); "" = the token names none.
    """

    letters: str
    may_overwrite: bool
    overrides: Overrides = NO_OVERRIDES
    anonymous: bool = False
    key_range: KeyRange | None = None
    may_tag: bool = True
    may_protect: bool = True
    scope: str = ""


def authorize(
    claim: Claim,
    needs: Permission,
    target: Target,
    place_access: PublicAccess,
    policies: Sequence[AccessPolicy],
    now_wall_ticks: int,
    peer_ip: str,
    tls: bool,
    version: str | None,
) -> Grant:
    """Check that the caller may run an operation on `target`, and return the caller's rights.

    Arguments:
        target: the resource; a SAS is valid only for the resource that it was signed for.
        place_access: public access of the container; NONE if there is no such container.
        policies: stored access policies of the container (queue, table, share).
        peer_ip: without port.
        version: the request's x-ms-version, which decides how anonymous callers are refused.

    Raises: StorageError: 401, 403 or 404; 400 if a SAS and its stored policy both set a field.
    """
    if claim.account != target.account:
        raise _refusal(
            AUTHORIZATION_FAILURE,
            f"The credentials are those of the account '{claim.account}'.",
        )
    # The most frequent kinds first: a check that fails costs more than one that holds.
    if isinstance(claim, SasClaim) and not needs.bearer_only:
        effective = resolve(claim.sas, policies)
        judge_times(claim.sas, effective, now_wall_ticks)
        _judge_origin(claim.sas, peer_ip, tls)
        if claim.kind is _ACCOUNT:
            return _account_grant(claim.sas, needs, target.service, effective.permission)
        if claim.kind is SasKind.USER_DELEGATION:
            delegation.judge_key(claim.sas, target.service, now_wall_ticks)
            return _delegated_grant(claim, needs, target, effective.permission)
        return _sas_grant(claim, needs, target, effective.permission)
    if isinstance(claim, SharedKeyClaim) and not needs.bearer_only:
        return Grant(PERMISSION_LETTERS[target.service], may_overwrite=True)
    if isinstance(claim, BearerClaim):
        return _role_grant(claim, needs, target)
    if isinstance(claim, Anonymous):
        return _authorize_anonymous(claim, needs, target, place_access, version)
    raise authentication_failed("Only authentication scheme Bearer is supported")


def _role_grant(claim: BearerClaim, needs: Permission, target: Target) -> Grant:
    if needs.no_sas and not needs.actions:
        raise _refusal(
            AUTHORIZATION_FAILURE, "The operation needs an account key; no role can permit it."
        )
    who = f"the principal '{claim.identity.object_id}'"
    assignments = claim.assignments
    if needs.bearer_only:
        # A SAS signed with such a key names no group, so only its user's own roles count.
        assignments = tuple(one for one in assignments if one.principal == claim.identity.object_id)
    actions = roles.permitted_actions(assignments, target, needs.anywhere)
    _judge_roles(needs, target, actions, who)
    letters = roles.letters_of(actions, target.service)
    return Grant(
        letters,
        may_overwrite="w" in letters,
        may_tag="t" in letters,
        may_protect="i" in letters,
    )


def _judge_roles(needs: Permission, target: Target, actions: set[str], who: str) -> None:
    if roles.permits(needs.actions, actions):
        return
    able = [name for name in roles.ROLES if roles.role_permits(name, needs.actions, target.service)]
    text = f"It needs the role {' or '.join(able)}" if able else "No role can permit it"
    raise _refusal(AUTHORIZATION_PERMISSION_MISMATCH, f"{text}; this is what {who} lacks here.")


def _delegated_grant(claim: SasClaim, needs: Permission, target: Target, letters: str) -> Grant:
    """The token and the roles of the user who signed it must both permit a right."""
    granted = _sas_grant(claim, needs, target, letters)
    actions = roles.permitted_actions(claim.delegator, target, needs.anywhere)
    _judge_roles(needs, target, actions, f"the delegator '{claim.sas.skoid}'")
    own = roles.letters_of(actions, target.service)
    both = "".join(letter for letter in granted.letters if letter in own)
    return msgspec.structs.replace(
        granted,
        letters=both,
        may_overwrite="w" in both,
        may_tag="t" in both,
        may_protect="i" in both,
    )


@lru_cache(maxsize=256)
def _account_grant(sas: Sas, needs: Permission, service: Service, letters: str) -> Grant:
    """The rights of an account SAS do not depend on the resource's name."""
    anything = Target(service, "")
    return _sas_grant(SasClaim("", SasKind.ACCOUNT, sas, anything), needs, anything, letters)


def _sas_grant(claim: SasClaim, needs: Permission, target: Target, letters: str) -> Grant:
    _judge_permission(claim, needs, target, letters)
    return Grant(
        letters,
        may_overwrite="w" in letters,
        overrides=_overrides(claim),
        key_range=_key_range(claim),
        may_tag="t" in letters,
        may_protect="i" in letters,
        # Before that version the signature does not cover `ses`.
        scope=claim.sas.ses if claim.sas.sv >= SCOPE_SINCE else "",
    )


def _refusal(row: ErrorCode, reason: str) -> StorageError:
    return StorageError(row, f"{row.message} {reason}")


def _judge_origin(sas: Sas, peer_ip: str, tls: bool) -> None:
    if sas.spr == "https" and not tls:
        raise _refusal(
            AUTHORIZATION_PROTOCOL_MISMATCH,
            "The shared access signature permits HTTPS only (spr=https).",
        )
    if not sas.sip:
        return
    allowed = parse_addresses(sas.sip)
    peer = _ipv4(peer_ip)
    if allowed is None or peer is None or not allowed[0] <= peer <= allowed[1]:
        row = AUTHORIZATION_SOURCE_IPMISMATCH
        raise StorageError(row, row.message.format(ip=peer_ip), (("SourceIP", peer_ip),))


def _ipv4(text: str) -> ipaddress.IPv4Address | None:
    """The IPv4 address of a peer, even if it used a dual-stack socket; None for IPv6."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address if isinstance(address, ipaddress.IPv4Address) else address.ipv4_mapped


def _judge_permission(claim: SasClaim, needs: Permission, target: Target, granted: str) -> None:
    if needs.no_sas:
        other = " or a role" if needs.actions else ""
        text = f"The operation needs an account key{other}; no SAS can permit it."
        raise _refusal(AUTHORIZATION_FAILURE, text)
    if claim.kind is SasKind.ACCOUNT:
        alternatives = _judge_account_scope(claim.sas, needs, target)
    else:
        alternatives = _judge_service_scope(claim, needs, target)
    usable = _usable(granted, claim.sas.sv, needs.letters_since)
    for alternative in alternatives:
        if usable.issuperset(alternative):
            return
    raise _refusal(
        AUTHORIZATION_PERMISSION_MISMATCH,
        f"It needs sp={' or '.join(alternatives)}; the {claim.kind.value} grants '{granted}'.",
    )


@lru_cache(maxsize=1024)
def _usable(
    granted: str, version: str, letters_since: tuple[tuple[str, str], ...]
) -> frozenset[str]:
    """The letters that have a meaning in a token of this version."""
    return frozenset(
        letter
        for letter in granted
        if all(version >= since for known, since in letters_since if known == letter)
    )


def _judge_account_scope(sas: Sas, needs: Permission, target: Target) -> tuple[str, ...]:
    if target.service.letter not in sas.ss:
        raise _refusal(
            AUTHORIZATION_SERVICE_MISMATCH,
            f"It needs ss={target.service.letter}; the account SAS has ss={sas.ss}.",
        )
    if needs.account_sas is None:
        raise _refusal(AUTHORIZATION_FAILURE, "No account SAS can permit the operation.")
    resource_types, alternatives = needs.account_sas
    if set(sas.srt).isdisjoint(resource_types):
        named = " or ".join(f"{one} ({_RESOURCE_TYPES[one]})" for one in resource_types)
        raise _refusal(
            AUTHORIZATION_RESOURCE_TYPE_MISMATCH,
            f"It needs srt={named}; the account SAS has srt={sas.srt}.",
        )
    return alternatives


def _judge_service_scope(claim: SasClaim, needs: Permission, target: Target) -> tuple[str, ...]:
    if needs.sas is None:
        raise _refusal(AUTHORIZATION_FAILURE, f"No {claim.kind.value} can permit the operation.")
    if not reaches(claim, target):
        raise _refusal(
            AUTHORIZATION_FAILURE, f"The {claim.kind.value} was issued for another resource."
        )
    return needs.sas


def reaches(claim: SasClaim, target: Target) -> bool:
    """Whether a service or user delegation SAS that was signed for its own target covers
    `target`."""
    signed = claim.target
    if (signed.service, signed.account, signed.container) != (
        target.service,
        target.account,
        target.container,
    ):
        return False
    sr = claim.sas.sr
    if sr in ("b", "bs", "bv", "f"):
        return signed == target
    if sr == "d":
        return (
            target.blob is not None
            and signed.blob is not None
            and directory_of(claim.sas, target.blob) == directory_of(claim.sas, signed.blob)
        )
    return True


def _overrides(claim: SasClaim) -> Overrides:
    """The overrides that the signature covers, which are none for an account SAS."""
    sas = claim.sas
    since = _OVERRIDES_SINCE.get(claim.target.service)
    if claim.kind is SasKind.ACCOUNT or since is None or sas.sv < since:
        return NO_OVERRIDES
    if not (sas.rscc or sas.rscd or sas.rsce or sas.rscl or sas.rsct):
        return NO_OVERRIDES
    return Overrides(sas.rscc, sas.rscd, sas.rsce, sas.rscl, sas.rsct)


def _key_range(claim: SasClaim) -> KeyRange | None:
    """Source: "Create a service SAS", table access ranges."""
    sas = claim.sas
    if claim.kind is not SasKind.SERVICE or not (sas.spk or sas.epk):
        return None
    first = (sas.spk, sas.srk or None) if sas.spk else None
    last = (sas.epk, sas.erk or None) if sas.epk else None
    return KeyRange(first, last)


def _authorize_anonymous(
    claim: Anonymous,
    needs: Permission,
    target: Target,
    place_access: PublicAccess,
    version: str | None,
) -> Grant:
    if target.service is Service.BLOB and needs.public is not PublicAccess.NONE:
        if place_access is PublicAccess.CONTAINER:
            return Grant(
                "rl", may_overwrite=False, anonymous=True, may_tag=False, may_protect=False
            )
        if place_access is needs.public:
            return Grant("r", may_overwrite=False, anonymous=True, may_tag=False, may_protect=False)
    if version is not None and version >= CHALLENGE_SINCE:
        headers = (("WWW-Authenticate", claim.challenge),)
        raise StorageError(NO_AUTHENTICATION_INFORMATION, None, (), headers)
    if target.service is Service.BLOB:
        raise StorageError(RESOURCE_NOT_FOUND)
    raise authentication_failed("The request carries no credentials.")
