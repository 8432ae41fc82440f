"""Compounds: several messages in one frame, one after the other.

Source: [MS-SMB2] sections 3.2.4.1.4, 3.3.5.2.7; smb.md 1.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES, Header, read_header
from strongroom.wire.smb.structures import MalformedMessage

ELEMENTS_MAX: Final = 64
_ALIGNMENT: Final = 8


class CompoundElement(msgspec.Struct, frozen=True):
    """One message of a frame: its header, and all its bytes, header included."""

    header: Header
    message: memoryview


def split(frame: memoryview) -> tuple[CompoundElement, ...]:
    """The messages of a frame, in order. NextCommand must be an aligned offset after the header and
    within the frame."""
    elements: list[CompoundElement] = []
    at = 0
    while True:
        header = read_header(frame, at)
        step = header.next_command
        elements.append(CompoundElement(header, frame[at : at + step] if step else frame[at:]))
        if not step:
            return tuple(elements)
        if step < HEADER_BYTES or step % _ALIGNMENT or at + step >= len(frame):
            raise MalformedMessage(f"NextCommand is {step} at {at} of {len(frame)} bytes")
        if len(elements) == ELEMENTS_MAX:
            raise MalformedMessage(f"a compound of more than {ELEMENTS_MAX} messages")
        at += step


def related_chains(elements: Sequence[CompoundElement]) -> Iterator[Sequence[CompoundElement]]:
    """The chains of related elements: each element that is not related begins a chain.

    The first chain may begin with a related element, which is an error of the client.
    """
    first = 0
    for number, element in enumerate(elements):
        if number > first and not element.header.is_related:
            yield elements[first:number]
            first = number
    yield elements[first:]


def padding(size_bytes: int) -> bytes:
    """The zeros that follow an element of this size, unless it is the last."""
    return bytes(-size_bytes % _ALIGNMENT)
