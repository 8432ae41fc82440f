"""The times that the server tells before a logon: FILETIMEs, 100 ns since 1601.

Sources: [MS-SMB2] section 2.2.4 (SystemTime, ServerStartTime); [MS-NLMP] section 2.2.2.1
(MsvAvTimestamp).
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta

from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.setup import ntlm
from tests.servers.smb.client import Client, listener
from tests.servers.smb.messages import negotiate_message, session_setup_body, token_of
from tests.servers.smb.test_conversations import run

# What the tests' clock shows: 638,000,000,000,000,000 units of 100 ns after the year 1 began.
NOW = datetime(2022, 9, 28, 22, 13, 20, tzinfo=UTC)
_YEAR_1601 = datetime(1601, 1, 1, tzinfo=UTC)
_AV_TIME = 7


def time_of(filetime: int) -> datetime:
    return _YEAR_1601 + timedelta(microseconds=filetime // 10)


def pairs_of(challenge: bytes) -> dict[int, bytes]:
    """Return the AV_PAIRs of a CHALLENGE_MESSAGE."""
    length, _, at = struct.unpack_from("<HHI", challenge, 40)
    found, end = {}, at + length
    while at < end:
        kind, size = struct.unpack_from("<HH", challenge, at)
        found[kind] = challenge[at + 4 : at + 4 + size]
        at += 4 + size
    return found


def test_negotiate_tells_the_time() -> None:
    async def conversation() -> None:
        reply = await Client(listener()).negotiate()
        now, started = struct.unpack_from("<QQ", reply.body, 40)
        assert time_of(now) == NOW
        assert started == 0

    run(conversation())


def test_the_challenge_tells_the_time() -> None:
    async def conversation() -> None:
        client = Client(listener())
        await client.negotiate()
        body = session_setup_body(negotiate_message())
        client.send(client.message(Command.SESSION_SETUP, body))
        challenge = token_of((await client.reply()).body)
        challenge = challenge[challenge.index(ntlm.SIGNATURE) :]
        (filetime,) = struct.unpack("<Q", pairs_of(challenge)[_AV_TIME])
        assert time_of(filetime) == NOW

    run(conversation())
