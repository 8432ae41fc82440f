"""Whose requests a viewer of the console may see.

The key of an account shows the requests for it, by whichever credential. A data role shows those
for what it may read. The rest is for operators: other accounts, accounts that do not exist, and
requests that name none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from strongroom.auth.request import Service, Target
from strongroom.auth.roles import Assignments, permitted_actions
from strongroom.servers.console.requests.kept import ShortRecord

SERVICES: Final = {service.letter: service for service in Service}
Endpoints = Mapping[Service, str]
"""The URL of each service on its own port, without a slash at its end: `http://127.0.0.1:10000`."""
_READ: Final = {
    Service.BLOB: "blobs/read",
    Service.QUEUE: "messages/read",
    Service.TABLE: "entities/read",
    Service.FILE: "files/read",
}


class RequestScope(msgspec.Struct, frozen=True):
    """What a viewer may see of the requests.

    Attributes:
        account: the account whose key the viewer has proven; "" = none.
        is_operator: whether the viewer sees everything.
        assignments: the roles of the viewer.
    """

    account: str = ""
    is_operator: bool = False
    assignments: Assignments = ()

    def sees(self, record: ShortRecord) -> bool:
        if self.is_operator or self.owns(record.account):
            return True
        service = SERVICES.get(record.service)
        if service is None or not record.account or not self.assignments:
            return False
        target = Target(service, record.account, record.container or None)
        return _READ[service] in permitted_actions(self.assignments, target)

    def owns(self, account: str) -> bool:
        """Whether the viewer has proven a key of an account, and may see what it signs."""
        return bool(account) and account == self.account
