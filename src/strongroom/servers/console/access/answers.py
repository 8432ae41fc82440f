"""The answers of the Access view: `GET access` and `POST access/explain`.

Lives here: whose account is shown, and whose signature is checked. Must not live here: what a
signature means (explain.py). Only the account's own key has a signature of that account checked. Of
another account it learns only what it sent itself, and not whether there is such an account.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from strongroom.auth.accounts import Account, development_account
from strongroom.auth.roles import Assignment, Assignments
from strongroom.auth.sas import is_sas
from strongroom.servers.console.access import commands
from strongroom.servers.console.access.explain import explained, unchecked, with_check
from strongroom.servers.console.access.sas_text import Addresses, PastedSas, read_pasted
from strongroom.servers.console.api.access import (
    AccessOverview,
    AccountKeys,
    ExplainedSas,
    RoleAssignment,
)
from strongroom.servers.console.api.endpoints import ApiRequest
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.console.viewers import ACCOUNT_KEY, Viewer
from strongroom.servers.identities.accounts_file import AccountSource
from strongroom.servers.identities.identities import ServedIdentities
from strongroom.values import AccessPolicy

POLICIES_MAX: Final = 5
"""A container, queue, table or share has no more."""
_TEXT_MAX: Final = 256
_BAD_BODY: Final = (
    'The body must be {"sas": "...", "policies": [{"id", "start", "expiry", "permission"}]}, or '
    "without policies."
)


class GivenPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stored access policy as Get ACL tells it; "" = the policy does not set it."""

    id: str
    start: str = ""
    expiry: str = ""
    permission: str = ""


class SasToExplain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST access/explain.

    Attributes:
        sas: a SAS URL, its query, or a connection string with one.
        policies: those of the resource; None = not known.
    """

    sas: str
    policies: tuple[GivenPolicy, ...] | None = None


class IdentityFiles(msgspec.Struct, frozen=True):
    """Where accounts come from, and how commands reach the same files.

    Attributes:
        source_of: where an account comes from.
        accounts_flag, roles_flag: as in AccessOverview.
    """

    source_of: Callable[[str], AccountSource]
    has_accounts_file: bool
    accounts_flag: str
    roles_flag: str


class AccessAnswers(msgspec.Struct, frozen=True):
    """The two endpoints.

    Attributes:
        is_operator: whether the key of an account is an operator's.
        identities: judges bearer tokens; None = none is accepted.
        addresses: where the services are, for addresses of pasted signatures.
        wall_ticks: the current wall time, by which signatures are judged.
    """

    files: IdentityFiles
    accounts: Callable[[], tuple[Account, ...]]
    is_operator: Callable[[str], bool]
    identities: ServedIdentities | None
    addresses: Callable[[], Addresses]
    wall_ticks: Callable[[], int]

    async def access(self, asked: ApiRequest) -> AccessOverview:
        viewer, accounts = asked.known, self.accounts()
        own = viewer.account if viewer.kind == "key" else None
        return AccessOverview(
            account=next((self._keys(one) for one in accounts if one.name == own), None),
            accounts=tuple(map(self._keys, accounts)),
            accounts_flag=self.files.accounts_flag,
            roles_flag=self.files.roles_flag,
            roles=tuple(map(_shown, self._roles(viewer))),
            add_role_command=commands.add_role(own or accounts[0].name),
            takes_tokens=self.identities is not None,
            is_open=self.identities is not None and self.identities.is_open,
        )

    async def explain(self, asked: ApiRequest) -> ExplainedSas:
        sent = _given(asked.body)
        pasted = self._pasted(sent.sas)
        policies = None if sent.policies is None else tuple(map(_policy, sent.policies))
        found = explained(pasted, policies, self.wall_ticks())
        viewer = asked.known
        if viewer.kind != "key":
            return unchecked(found, f"Only an {ACCOUNT_KEY} has a signature checked.")
        if pasted.account not in ("", viewer.account):
            return unchecked(found, "It is for another account than the one of this sign-in.")
        account = next((one for one in self.accounts() if one.name == viewer.account), None)
        if account is None:
            return unchecked(found, "The account of this sign-in is gone.")
        return with_check(found, pasted, account)

    def _keys(self, account: Account) -> AccountKeys:
        source = self.files.source_of(account.name)
        known = development_account().keys
        return AccountKeys(
            name=account.name,
            keys=len(account.keys),
            has_known_key=any(key in known for key in account.keys),
            is_operator=self.is_operator(account.name),
            source=source,
            rotate_command=commands.rotate_account(account, source, self.files.has_accounts_file),
            remove_command=commands.remove_old_key(account, source),
        )

    def _roles(self, viewer: Viewer) -> Assignments:
        every = () if self.identities is None else self.identities.all_assignments()
        if viewer.is_operator:
            return every
        if viewer.kind == "key":
            return tuple(one for one in every if one.account == viewer.account)
        return viewer.assignments

    def _pasted(self, text: str) -> PastedSas:
        try:
            pasted = read_pasted(text, self.addresses())
        except ValueError:
            raise ApiRefusal(400, "InvalidSas", "The address of this URL cannot be read.") from None
        if not is_sas(pasted.query):
            text = "This text has no shared access signature: it has neither sig nor sv."
            raise ApiRefusal(400, "NoSas", text)
        return pasted


def _given(body: bytes) -> SasToExplain:
    try:
        sent = msgspec.json.decode(body, type=SasToExplain)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ApiRefusal(400, "InvalidBody", _BAD_BODY) from None
    if len(sent.policies or ()) > POLICIES_MAX:
        raise ApiRefusal(400, "InvalidBody", f"At most {POLICIES_MAX} policies.")
    return sent


def _policy(given: GivenPolicy) -> AccessPolicy:
    return AccessPolicy(
        given.id[:_TEXT_MAX], given.start or None, given.expiry or None, given.permission or None
    )


def _shown(one: Assignment) -> RoleAssignment:
    return RoleAssignment(
        principal=one.principal,
        role=one.role,
        account=one.account,
        resource=one.resource,
        remove_command=commands.remove_role(one),
    )
