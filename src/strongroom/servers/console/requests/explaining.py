"""One kept request explained: why it was refused, and how it is sent again.

Lives here: which explanation a request gets. Must not live here: the explanations (reasons.py,
replay.py), what else is shown of a request (answers.py). This module and what it imports are loaded
when somebody first looks at a request.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.accounts import Account
from strongroom.servers.console.api.documents import Replay, Why
from strongroom.servers.console.requests.heads import SentHead
from strongroom.servers.console.requests.kept import FullRecord
from strongroom.servers.console.requests.masking import Masking
from strongroom.servers.console.requests.reasons import why
from strongroom.servers.console.requests.received import request_of
from strongroom.servers.console.requests.replay import replay
from strongroom.servers.console.requests.scope import Endpoints

_REFUSED_FROM: Final = 400


def explained(
    full: FullRecord,
    head: SentHead,
    masking: Masking,
    owner: Account | None,
    endpoints: Endpoints,
) -> tuple[Why | None, Replay | None]:
    """Return why a request was refused, and how to send it again.

    Arguments:
        head: the request's own.
        owner: the account whose key signs what the viewer may see; None = it may see none.
        endpoints: where requests that came through the console go instead.
    """
    record = full.short
    request = request_of(head, record, tls=full.tls)
    reason = None
    if record.status >= _REFUSED_FROM:
        reason = why(full, request, masking, owner, is_cut=head.is_cut)
    if not head.method:  # bytes that were no request
        return reason, None
    return reason, replay(request, record, masking, endpoints)
