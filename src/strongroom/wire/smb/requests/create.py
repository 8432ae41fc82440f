"""CREATE: the request to open a file, a directory or a pipe, and its response.

Contexts: create_contexts.py. Source: [MS-SMB2] sections 2.2.13 and 2.2.14.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.wire.smb.header import HEADER_BYTES, FileId
from strongroom.wire.smb.information.file_information import (
    NETWORK_OPEN,
    NetworkOpenInformation,
)
from strongroom.wire.smb.requests.bodies import MessageBody, utf16
from strongroom.wire.smb.requests.create_contexts import CreateContexts, read_contexts
from strongroom.wire.smb.structures import Layout, MalformedMessage, variable_part


class CreateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """As it was sent; masks and enumerations are not checked yet."""

    oplock_level: int = 0
    impersonation: int = 2
    access: int
    attributes: int = 0
    share: int = 0
    disposition: int
    options: int = 0
    name: str
    contexts: CreateContexts = CreateContexts()


class CreateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`contexts` is the chain of response contexts, as bytes."""

    oplock_level: int
    action: int
    node: NetworkOpenInformation
    file_id: FileId
    contexts: bytes = b""


class _Fixed(msgspec.Struct, frozen=True):
    oplock_level: int
    impersonation: int
    access: int
    attributes: int
    share: int
    disposition: int
    options: int
    name_offset: int
    name_length: int
    contexts_offset: int
    contexts_length: int


class _AnswerHead(msgspec.Struct, frozen=True):
    structure_size: int
    oplock_level: int
    action: int


class _AnswerTail(msgspec.Struct, frozen=True):
    persistent: int
    volatile: int
    contexts_offset: int
    contexts_length: int


_REQUEST: Final = MessageBody(_Fixed, "xBI16xIIIIIHHII", 57)
_ANSWER_SIZE: Final = 89
_ANSWER_HEAD: Final = Layout(_AnswerHead, "HBxI")
_ANSWER_TAIL: Final = Layout(_AnswerTail, "QQII")
_ANSWER_END: Final = HEADER_BYTES + _ANSWER_HEAD.size + NETWORK_OPEN.size + _ANSWER_TAIL.size


def read_create(message: memoryview) -> CreateRequest:
    """`message` begins with its header."""
    fixed = _REQUEST.read(message)
    name = variable_part(message, fixed.name_offset, fixed.name_length, after=_REQUEST.end)
    contexts = variable_part(
        message, fixed.contexts_offset, fixed.contexts_length, after=_REQUEST.end
    )
    if contexts and fixed.contexts_offset % 8:
        raise MalformedMessage("the contexts begin at no multiple of 8")
    return CreateRequest(
        oplock_level=fixed.oplock_level,
        impersonation=fixed.impersonation,
        access=fixed.access,
        attributes=fixed.attributes,
        share=fixed.share,
        disposition=fixed.disposition,
        options=fixed.options,
        name=utf16(name),
        contexts=read_contexts(contexts),
    )


def write_create_answer(answer: CreateAnswer) -> bytes:
    tail = _AnswerTail(
        answer.file_id.persistent,
        answer.file_id.volatile,
        contexts_offset=_ANSWER_END if answer.contexts else 0,
        contexts_length=len(answer.contexts),
    )
    head = _AnswerHead(_ANSWER_SIZE, answer.oplock_level, answer.action)
    return (
        _ANSWER_HEAD.write(head)
        + NETWORK_OPEN.write(answer.node)
        + _ANSWER_TAIL.write(tail)
        + answer.contexts
    )
