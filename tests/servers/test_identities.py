"""What a request is judged by later: looked up once, and asked without reading anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from strongroom.auth import bearer
from strongroom.auth.bearer import Identity, Issuer
from strongroom.auth.claims import Anonymous, BearerClaim
from strongroom.auth.key_set import KeySet, parse_key_set
from strongroom.auth.roles import Assignment
from strongroom.errors import SERVER_BUSY, StorageError
from strongroom.servers.identities.identities import ServedIdentities
from strongroom.servers.identities.roles_file import ServedRoles, change_roles
from tests.auth import tokens

USER, ACCOUNT = "someone", "devaccount1"
ROLE = Assignment(USER, "Storage Blob Data Reader", ACCOUNT, "")
CLAIM = BearerClaim(ACCOUNT, Identity(USER), ())


class Keys:
    """Keys that a test takes away."""

    def __init__(self) -> None:
        self.keys: KeySet | None = parse_key_set(tokens.key_set())

    def current(self) -> KeySet | None:
        return self.keys

    async def ready(self, kid: str | None) -> None:
        """They are here."""


def test_what_was_looked_up_does_not_change(tmp_path: Path) -> None:
    path, keys = tmp_path / "roles.json", Keys()
    change_roles(path, lambda _: (ROLE,))
    served = ServedIdentities(Issuer(name=tokens.ISSUER), keys, ServedRoles(path))
    token = bearer.parse_token(tokens.token(oid=USER))
    before = served.present(CLAIM)
    change_roles(path, lambda _: ())
    keys.keys = None
    before.verify(token)
    assert before.assignments((USER,), ACCOUNT) == (ROLE,)
    after = served.present(CLAIM)
    assert after.assignments((USER,), ACCOUNT) == ()
    for identities in (after, served):
        with pytest.raises(StorageError) as raised:
            identities.verify(token)
        assert raised.value.row is SERVER_BUSY


def test_a_request_without_a_token_looks_nothing_up() -> None:
    served = ServedIdentities(Issuer(name=tokens.ISSUER), Keys(), ServedRoles(None))
    present = served.present(Anonymous(ACCOUNT))
    assert (present.keys, present.roles) == (None, ())
