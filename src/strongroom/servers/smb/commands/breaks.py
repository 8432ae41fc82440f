"""OPLOCK_BREAK: the acknowledgments of notices by holders of oplocks and leases.

Lives here: from the request to the services and back. Sources: [MS-SMB2] sections 3.3.5.22.1 and
3.3.5.22.2; smb.md 2.12.
"""

from __future__ import annotations

from strongroom.servers.smb.commands.targets import FileTarget
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state.declarations import SmbAnswer, SmbElement
from strongroom.services.file.handles import breaking
from strongroom.wire.smb import statuses
from strongroom.wire.smb.requests.oplock_break import (
    LeaseBreakAck,
    OplockBreak,
    read_acknowledgment,
    write_lease_acknowledgment,
    write_oplock_break,
)


async def acknowledge(element: SmbElement) -> SmbAnswer:
    acknowledgment = read_acknowledgment(element.message)
    services = element.services
    if isinstance(acknowledgment, LeaseBreakAck):
        guid = element.connection.negotiated.client_guid
        state = breaking.acknowledge_lease(services, guid, acknowledgment.key, acknowledgment.state)
        return SmbAnswer(write_lease_acknowledgment(LeaseBreakAck(acknowledgment.key, int(state))))
    target = element.session.find_open(acknowledgment.file_id).target
    if not isinstance(target, FileTarget):
        raise SmbError(statuses.STATUS_FILE_CLOSED)
    level = breaking.acknowledge_oplock(services, target.handle, acknowledgment.level)
    return SmbAnswer(write_oplock_break(OplockBreak(acknowledgment.file_id, level)))
