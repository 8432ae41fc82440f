"""The documents of the Access view: accounts, roles, and a shared access signature explained.

Lives here: frozen structs, each field with whose it is. Must not live here: how they are made
(access/), the other documents (documents.py). No document has a key or a signature.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from strongroom.servers.console.marks import OWN, READABLE, SERVER
from strongroom.servers.identities.accounts_file import AccountSource

SasState = Literal["valid", "not yet", "expired", "unknown"]
SasVerdict = Literal["right", "wrong"]
SasKindName = Literal["service SAS", "account SAS", "user delegation SAS"]
NamedService = Literal["blob", "queue", "table", "file", ""]


class AccountKeys(msgspec.Struct, frozen=True, kw_only=True):
    """One account, and the commands that change its keys.

    Attributes:
        keys: how many there are.
        has_known_key: whether one of them is the key of emulators, which is published.
        is_operator: whether its key sees the whole server.
        source: "file" the accounts file, "store" the database, "start" a flag or variable of the
            server's start, "development" while no account is given.
        rotate_command: makes a new first key; "" where no command can. For the development account
            it adds an account, which takes its place.
        remove_command: ends the second key; "" if there is none.
    """

    name: Annotated[str, OWN] = ""
    keys: Annotated[int, OWN] = 0
    has_known_key: Annotated[bool, OWN] = False
    is_operator: Annotated[bool, OWN] = False
    source: Annotated[AccountSource | None, OWN] = None
    rotate_command: Annotated[str, OWN] = ""
    remove_command: Annotated[str, OWN] = ""


class RoleAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A role that a principal has.

    Attributes:
        resource: the container, queue, table or share; "" = the whole account.
        remove_command: takes it back; "" where only an edit of the roles file does.
    """

    principal: Annotated[str, READABLE]
    role: Annotated[str, READABLE]
    account: Annotated[str, READABLE]
    resource: Annotated[str, READABLE]
    remove_command: Annotated[str, READABLE]


class AccessOverview(msgspec.Struct, frozen=True, kw_only=True):
    """`GET access`: who may come in.

    Attributes:
        account: the account of the key that asks; None with a token.
        accounts: all of them.
        accounts_flag, roles_flag: to be put behind commands, so that they change this server's
            files or store; "" if it has neither.
        roles: those in the account of a key, those of a token's own principal, all for operators.
        add_role_command: with placeholders for the role and the principal.
        takes_tokens: whether bearer tokens are accepted at all.
        is_open: whether every principal may do everything, since there is no roles file
            (development mode).
    """

    account: Annotated[AccountKeys | None, OWN] = None
    accounts: Annotated[tuple[AccountKeys, ...], SERVER] = ()
    accounts_flag: Annotated[str, SERVER] = ""
    roles_flag: Annotated[str, SERVER] = ""
    roles: Annotated[tuple[RoleAssignment, ...], READABLE]
    add_role_command: Annotated[str, OWN] = ""
    takes_tokens: Annotated[bool, READABLE]
    is_open: Annotated[bool, READABLE]


class SasField(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter of a signature, decoded; `sig` is masked."""

    name: Annotated[str, READABLE]
    value: Annotated[str, READABLE]
    meaning: Annotated[str, READABLE]


class SasRight(msgspec.Struct, frozen=True, kw_only=True):
    """One letter of `sp`, and what it permits."""

    letter: Annotated[str, READABLE]
    text: Annotated[str, READABLE]


class ExplainedSas(msgspec.Struct, frozen=True, kw_only=True):
    """`POST access/explain`: a shared access signature, as it is written and as it was signed.

    What is READABLE here is only what the sender has sent, put into words.

    Attributes:
        account, service, container: that its URL names; "" if it was sent without one.
        reaches: on what it permits something, as a sentence.
        starts_time, expires_time: None if neither the signature nor a given policy says it.
        state: by this server's clock; "unknown" if a stored policy holds the times.
        policy: the id of the stored policy that it names; "" without one.
        problems: what would be refused, in the words of the refusal.
        unchecked: why the signature was not checked; "" if it was.
        signature: None if it was not checked.
        signing_key: the number of the account's key that signed, from 1 on.
        string_to_sign: what the server signed to compare; None unless the signature is wrong.
        mistakes: what was found to differ from what was signed.
    """

    kind: Annotated[SasKindName, READABLE]
    account: Annotated[str, READABLE]
    service: Annotated[NamedService, READABLE]
    container: Annotated[str, READABLE]
    reaches: Annotated[str, READABLE]
    fields: Annotated[tuple[SasField, ...], READABLE]
    permits: Annotated[tuple[SasRight, ...], READABLE]
    starts_time: Annotated[str | None, READABLE]
    expires_time: Annotated[str | None, READABLE]
    state: Annotated[SasState, READABLE]
    policy: Annotated[str, READABLE]
    addresses: Annotated[str, READABLE]
    protocols: Annotated[str, READABLE]
    problems: Annotated[tuple[str, ...], READABLE]
    unchecked: Annotated[str, READABLE]
    signature: Annotated[SasVerdict | None, OWN] = None
    signing_key: Annotated[int, OWN] = 0
    string_to_sign: Annotated[str | None, OWN] = None
    mistakes: Annotated[tuple[str, ...], OWN] = ()


DOCUMENTS: Final[tuple[type[msgspec.Struct], ...]] = (AccessOverview, ExplainedSas)
"""The documents of this view; each contains the others of this module."""
