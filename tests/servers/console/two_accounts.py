"""A server with two accounts, an operator by role and a reader of one container.

Lives here: the server, and requests by a token. Must not live here: what answers must be.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from strongroom.auth.accounts import Account
from strongroom.auth.roles import OPERATOR
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

READER, OPERATING = "reader-of-one-container", "operator"


@contextlib.contextmanager
def two_accounts(folder: Path) -> Iterator[ServedConsole]:
    """Two accounts, an operator by role, a reader of one container."""
    roles = folder / "roles.json"
    reads = {"role": "Storage Blob Data Reader", "account": "shop", "resource": "public"}
    assignments = [
        {"principal": OPERATING, "role": OPERATOR, "account": "bank"},
        {"principal": READER, **reads},
        {"principal": "someone", "role": "Storage Queue Data Reader", "account": "bank"},
    ]
    roles.write_text(json.dumps({"assignments": assignments}))
    roles.chmod(0o600)
    with serving(
        SHOP, BANK, oauth=OAuth(), roles=RolesSource(roles, must_exist=True), test_clock=True
    ) as found:
        yield found


def by_token(
    served: ServedConsole, principal: str, name: str, method: str = "GET", body: bytes | None = None
) -> Answer:
    token = tokens.token(oid=principal, aud="https://storage.azure.com")
    fields = {"Authorization": f"Bearer {token}", "x-ms-version": VERSION}
    return served.ask(f"{API}{name}", method, body, fields)


def key_of(account: Account) -> str:
    return base64.b64encode(account.keys[0]).decode()
