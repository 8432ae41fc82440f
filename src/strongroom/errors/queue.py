"""The rows of the error table that only the Queue service uses.

Must not live here: rows that several services share (core.py). Source: "Queue service error
codes" of the Azure Storage REST reference.
"""

from __future__ import annotations

from strongroom.errors.core import row

INVALID_MARKER = row("InvalidMarker", 400, "The specified marker is invalid.")
MESSAGE_NOT_FOUND = row("MessageNotFound", 404, "The specified message does not exist.")
MESSAGE_TOO_LARGE = row("MessageTooLarge", 400, "The message exceeds the maximum allowed size.")
POP_RECEIPT_MISMATCH = row(
    "PopReceiptMismatch",
    400,
    "The specified pop receipt did not match the pop receipt for a dequeued message.",
)
QUEUE_ALREADY_EXISTS = row("QueueAlreadyExists", 409, "The specified queue already exists.")
QUEUE_BEING_DELETED = row("QueueBeingDeleted", 409, "The specified queue is being deleted.")
QUEUE_DISABLED = row(
    "QueueDisabled", 409, "The specified queue has been disabled by the administrator."
)
QUEUE_NOT_EMPTY = row("QueueNotEmpty", 409, "The specified queue is not empty.")
