"""The snapshot by which a waiting request is judged again: taken once, then used without IO."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from strongroom.auth import bearer
from strongroom.auth.accounts import Account, AccountsError
from strongroom.auth.bearer import Identity, Issuer
from strongroom.auth.claims import Anonymous, BearerClaim
from strongroom.auth.key_set import KeySet, parse_key_set
from strongroom.auth.roles import ASSIGNMENTS_MAX, Assignment, RolesError
from strongroom.errors.core import SERVER_BUSY, StorageError
from strongroom.servers.identities import private_file
from strongroom.servers.identities.accounts_file import change_accounts, read_accounts
from strongroom.servers.identities.identities import ServedIdentities
from strongroom.servers.identities.roles_file import (
    FILE_BYTES_MAX,
    ServedRoles,
    change_roles,
    read_roles,
)
from tests.auth import tokens

USER, ACCOUNT = "someone", "devaccount1"
ROLE = Assignment(USER, "Storage Blob Data Reader", ACCOUNT, "")
ONE, OTHER = Account("first", (b"key",)), Account("second", (b"key",))
CLAIM = BearerClaim(ACCOUNT, Identity(USER), ())


class Keys:
    """Keys that a test can remove."""

    def __init__(self) -> None:
        self.keys: KeySet | None = parse_key_set(tokens.key_set())

    def current(self) -> KeySet | None:
        return self.keys

    async def ready(self, kid: str | None) -> None:
        """Return at once, since the keys are cached."""


def test_what_was_looked_up_does_not_change(tmp_path: Path) -> None:
    path, keys = tmp_path / "roles.json", Keys()
    change_roles(path, lambda _: (ROLE,))
    served = ServedIdentities(Issuer(name=tokens.ISSUER), keys, ServedRoles(path))
    token = bearer.parse_token(tokens.token(oid=USER))
    before = served.snapshot(CLAIM)
    change_roles(path, lambda _: ())
    keys.keys = None
    before.verify(token)
    assert before.assignments((USER,), ACCOUNT) == (ROLE,)
    after = served.snapshot(CLAIM)
    assert after.assignments((USER,), ACCOUNT) == ()
    for identities in (after, served):
        with pytest.raises(StorageError) as raised:
            identities.verify(token)
        assert raised.value.row is SERVER_BUSY


def test_a_request_without_a_token_looks_nothing_up() -> None:
    served = ServedIdentities(Issuer(name=tokens.ISSUER), Keys(), ServedRoles(None))
    present = served.snapshot(Anonymous(ACCOUNT))
    assert (present.keys, present.roles) == (None, ())


def test_an_unreadable_roles_file_ends_the_freedom_of_development_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "roles.json"
    served = ServedRoles(path, open_without=True)
    assert served.of((USER,), ACCOUNT)
    change_roles(path, lambda _: (ROLE,))

    def no_descriptor_left(*given: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(private_file, "open", no_descriptor_left, raising=False)
        assert served.of((USER,), ACCOUNT) == ()
    assert served.of((USER,), ACCOUNT) == (ROLE,)


def test_a_roles_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "roles.json"
    path.write_bytes(b" " * (FILE_BYTES_MAX + 1))
    with pytest.raises(RolesError, match=r"roles\.json: longer than"):
        ServedRoles(path)


def test_a_roles_file_that_nobody_could_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "roles.json"
    most = tuple(Assignment(f"u{number}", ROLE.role, ACCOUNT) for number in range(ASSIGNMENTS_MAX))
    change_roles(path, lambda _: most)
    with pytest.raises(RolesError, match=r"roles\.json: there are more than 10000"):
        change_roles(path, lambda before: (*before, ROLE))
    assert read_roles(path) == most
    wide = tuple(Assignment(f"{one.principal:x>256}", one.role, ACCOUNT, "c" * 63) for one in most)
    with pytest.raises(RolesError, match=r"roles\.json: longer than"):
        change_roles(path, lambda _: wide)
    assert read_roles(path) == most


@pytest.mark.parametrize(
    "edited", [(), (ONE, OTHER, ONE), (Account("first", (bytes(FILE_BYTES_MAX),)),)]
)
def test_an_accounts_file_that_nobody_could_read_is_not_written(
    edited: tuple[Account, ...], tmp_path: Path
) -> None:
    path = tmp_path / "accounts.json"
    change_accounts(path, lambda _: (ONE, OTHER))
    with pytest.raises(AccountsError, match=r"accounts\.json: "):
        change_accounts(path, lambda _: edited)
    assert read_accounts(path) == (ONE, OTHER)
