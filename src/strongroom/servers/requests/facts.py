"""What the path of a request found out about it, for the observers of a server.

Lives here: the refusal of a request, and the outcomes of a batch's parts. Must not live here: what
an observer makes of them (access_log/, tracing/). A refusal is kept without its exception: the
traceback of an exception refers to the whole request, which would be a cycle.
"""

from __future__ import annotations

from types import CodeType

import msgspec

from strongroom.errors.core import ErrorCode, Extras, StorageError


class Refusal(msgspec.Struct, frozen=True):
    """The refusal of a request or of a part.

    Attributes:
        row: the row of the table of errors.
        rule: the code of the function that raised the refusal; None if nothing raised it.
        message: the text of this occurrence.
        extras: the elements that follow it in the answer's body.
    """

    row: ErrorCode
    rule: CodeType | None
    message: str = ""
    extras: Extras = ()


class PartOutcome(msgspec.Struct, frozen=True):
    """The outcome of one part of a batch.

    Attributes:
        number: its place in the batch, from 1 on.
        facts: its ParsedRequest (admission.py); a Refusal if it could not be read.
        status: of its answer.
        bytes_out: the length of its answer's body.
        request_id: x-ms-request-id of its answer; "" if it has none.
    """

    number: int
    facts: object
    status: int
    bytes_out: int
    request_id: str = ""


def refusal_of(error: StorageError) -> Refusal:
    step = error.__traceback__
    if step is None:
        return Refusal(error.row, None, error.message, error.extras)
    while step.tb_next is not None:
        step = step.tb_next
    return Refusal(error.row, step.tb_frame.f_code, error.message, error.extras)
