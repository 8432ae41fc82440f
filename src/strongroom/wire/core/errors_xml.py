"""The XML body of an error response.

Source: "Status and error codes": `<Error>` with Code, Message and then the further elements of the
code.
"""

from __future__ import annotations

from strongroom.errors.core import StorageError
from strongroom.values import iso7
from strongroom.wire.core.xml import DECLARATION, escape


def error_body(error: StorageError, request_id: str, now: int) -> bytes:
    """`request_id` is x-ms-request-id of the response; `now` is wall time in ticks."""
    extras = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in error.extras)
    return (
        f"{DECLARATION}<Error><Code>{error.row.code}</Code>"
        f"<Message>{escape(error.message)}\nRequestId:{escape(request_id)}\nTime:{iso7(now)}"
        f"</Message>{extras}</Error>"
    ).encode()
