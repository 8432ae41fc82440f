"""Limits and timeouts of the HTTP server, and the report of each exchange to an observer.

Lives here: plain frozen data. Must not live here: limits of Azure operations (limits.py). Source:
RFC 9112 sections 2.3, 3 and 9.5: a server may bound what it accepts, and may close an idle or slow
connection. The figures are our own choices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from strongroom.errors.core import StorageError
from strongroom.limits import (
    KIB,
    MIB,
    REQUEST_HEAD_BYTES_MAX,
    REQUEST_HEADERS_MAX,
    REQUEST_TARGET_BYTES_MAX,
)
from strongroom.servers.connections.settings import AcceptSettings
from strongroom.wire.core.http import Request, Response

HEAD_KEPT_BYTES: Final = 4 * KIB
"""So much of a request's head is kept as it was sent, until the request ends."""


class HttpSettings(AcceptSettings, frozen=True):
    """Everything that can be set on an HTTP server; the defaults suit the internet and loopback
    alike.

    Pipelining: a connection may send `pipeline_bytes_max` bytes early, plus at most one read (256
    KiB). The first read of a connection takes at most `first_read_bytes_max`. It may contain the
    start of a body, which no share of memory limits yet. A body whose handler is slow buffers
    `body_buffer_bytes_max`, plus at most as much again. If many bodies arrive, each buffers its
    share of `body_buffers_bytes` (http/buffers.py). Larger bodies that are read whole hold at most
    `documents_bytes_max` together. Above that, the body that has been arriving for longest is
    refused (503). While a body is read or an answer is written, `stall_bytes_min` must move in
    every stall timeout. Whole answers larger than `answer_large_bytes` hold at most
    `answers_bytes_max` until their clients have read them. Above that, the oldest answer is
    aborted. An unread body of up to `discard_bytes_max` is discarded to keep the connection. Above
    that, the connection lingers until the client has seen the answer (`linger_*`), then ends.
    """

    head_bytes_max: int = REQUEST_HEAD_BYTES_MAX
    headers_max: int = REQUEST_HEADERS_MAX
    target_bytes_max: int = REQUEST_TARGET_BYTES_MAX
    pipeline_bytes_max: int = 64 * KIB
    first_read_bytes_max: int = 64 * KIB
    body_buffer_bytes_max: int = 256 * KIB
    body_buffers_bytes: int = 4 * MIB
    write_buffer_high_bytes: int = 512 * KIB
    documents_bytes_max: int = 256 * MIB
    answer_large_bytes: int = 512 * KIB
    answers_bytes_max: int = 256 * MIB
    stall_bytes_min: int = KIB
    idle_timeout_s: float = 120.0
    body_stall_timeout_s: float = 30.0
    write_stall_timeout_s: float = 60.0
    discard_bytes_max: int = MIB
    discard_timeout_s: float = 5.0
    linger_bytes_max: int = 512 * MIB
    linger_timeout_s: float = 30.0
    linger_idle_timeout_s: float = 2.0
    sweep_interval_s: float = 1.0


class Exchange(msgspec.Struct, frozen=True):
    """One request and its answer, for metrics and logs.

    `request` is None when no request could be read. `bytes_in` counts the body bytes that arrived.
    `bytes_out` counts all bytes that were given to the socket, including the head. `seconds` is the
    time from the complete request head to the last byte that was given to the socket. `complete` is
    False when the answer could not be sent whole. `response` is the answer that was sent or begun.
    `head_bytes` is the length of its head, 0 if it was not sent whole. `peer` is the client's
    address. `request_head` is the request's head as it was sent, without the empty line at its end,
    cut at HEAD_KEPT_BYTES. `answer_head` is the head of the answer, b"" if it was not sent whole.
    """

    request: Request | None
    status: int
    bytes_in: int
    bytes_out: int
    seconds: float
    complete: bool
    response: Response | None = None
    head_bytes: int = 0
    peer: str = ""
    request_head: bytes = b""
    answer_head: bytes = b""


Handler = Callable[[Request], Awaitable[Response]]
RenderError = Callable[[StorageError, Request | None], Response]
Observer = Callable[[Exchange], None]
