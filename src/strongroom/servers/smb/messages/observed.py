"""What observers are told of a message of SMB: whose session, which share and which file.

Lives here: where each is found. Must not live here: observers (servers/access_log/). It runs only
where there are observers.
"""

from __future__ import annotations

from strongroom.servers.observers import SmbExchange
from strongroom.servers.smb.messages.checks import IncomingMessage
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.servers.smb.state.sessions import SmbSession, TreeConnect
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.requests.create import read_create
from strongroom.wire.smb.setup.tree_connect import read_tree_connect
from strongroom.wire.smb.structures import MalformedMessage


def observed(
    peer: str,
    incoming: IncomingMessage,
    running: SmbElement | None,
    answer: SmbAnswer,
    seconds: float,
) -> SmbExchange:
    """`running` is None if the message was refused before its handler ran."""
    session = incoming.session if running is None else running.session
    is_valid = session is not None and session.is_valid
    tree = _tree(session, incoming, answer)
    body = answer.body if isinstance(answer.body, tuple) else (answer.body,)
    return SmbExchange(
        peer=peer,
        header=incoming.header,
        request=incoming.message,
        status=answer.status,
        seconds=seconds,
        account=session.account if session is not None and is_valid else "",
        share=_share(tree, incoming),
        path=_path(incoming),
        session_id=incoming.header.session_id if session is None else session.id,
        tree_id=incoming.header.tree_id if tree is None else tree.id,
        bytes_out=sum(map(len, body)),
    )


def _tree(
    session: SmbSession | None, incoming: IncomingMessage, answer: SmbAnswer
) -> TreeConnect | None:
    if incoming.tree is None and session is not None and answer.tree_id is not None:
        return session.trees.get(answer.tree_id)
    return incoming.tree


def _share(tree: TreeConnect | None, incoming: IncomingMessage) -> str:
    if tree is not None:
        return tree.share
    if incoming.header.command == Command.TREE_CONNECT:
        try:
            return read_tree_connect(incoming.message).share
        except MalformedMessage:
            pass  # it was refused for the same reason
    return ""


def _path(incoming: IncomingMessage) -> tuple[str, ...] | None:
    if incoming.open is not None:
        return incoming.open.target.path
    if incoming.header.command == Command.CREATE:
        try:
            return tuple(read_create(incoming.message).name.split("\\"))
        except MalformedMessage:
            pass  # it was refused for the same reason
    return None
