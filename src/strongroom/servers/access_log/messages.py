"""The record of one message of SMB.

Lives here: the record. Must not live here: the form of a line (record.py). Source: "Azure Files
monitoring data reference", resource logs; the names beginning with `smb` are Azure's.
"""

from __future__ import annotations

from typing import Final

from strongroom.servers.access_log.exchanges import READ, WRITE
from strongroom.servers.access_log.identities import ANONYMOUS
from strongroom.servers.access_log.places import Places
from strongroom.servers.access_log.record import AccessRecord, IdentityField, Properties
from strongroom.servers.access_log.texts import cut
from strongroom.servers.observers import SmbExchange
from strongroom.values import TICKS_PER_S, iso7
from strongroom.wire.smb.commands import Command, name_of
from strongroom.wire.smb.header import HEADER_BYTES

_WRITING: Final = frozenset((Command.CREATE, Command.WRITE, Command.SET_INFO, Command.IOCTL))
_SERVICE_TYPE: Final = "files"
_SUCCESS: Final = "Success"
_US_PER_S: Final = 1_000_000


class MessageRecords:
    def __init__(self, places: Places) -> None:
        self._places = places

    def of(self, exchange: SmbExchange, listener: str, ended: int, engine_s: float) -> AccessRecord:
        """`ended` is wall time in ticks, `engine_s` how long the message waited for the engine."""
        header, seconds = exchange.header, exchange.seconds
        command = name_of(header.command)
        is_refused = exchange.status >> 30 == 3  # the severity "error" of MS-ERREF
        key = self._key(exchange)
        return AccessRecord(
            time=iso7(ended - int(seconds * TICKS_PER_S)),
            category=WRITE if header.command in _WRITING else READ,
            operation_name="".join(word.title() for word in command.split("_")),
            operation_version="",
            status_code=exchange.status,
            status_text=f"0x{exchange.status:08X}" if is_refused else _SUCCESS,
            duration_ms=int(seconds * _US_PER_S) / 1000,
            caller_ip_address=exchange.peer,
            correlation_id=f"{exchange.session_id:016x}-{header.message_id:x}",
            protocol="SMB",
            uri="",
            identity=IdentityField("NTLM", account=exchange.account)
            if exchange.account
            else ANONYMOUS,
            properties=Properties(
                account_name=exchange.account,
                service_type=_SERVICE_TYPE,
                listener=listener,
                object_key=key,
                engine_ms=int(engine_s * _US_PER_S) / 1000,
                request_body_size=len(exchange.request) - HEADER_BYTES,
                response_body_size=exchange.bytes_out,
                smb_session_id=f"0x{exchange.session_id:x}",
                smb_tree_connect_id=f"0x{exchange.tree_id:x}",
                smb_message_id=f"0x{header.message_id:x}",
                smb_command_major=header.command,
            ),
        )

    def _key(self, exchange: SmbExchange) -> str:
        account, share, path = exchange.account, exchange.share, exchange.path
        if not share:
            return ""
        if path is None:
            return cut(f"/{account}/{share}")
        return self._places.key(account, share, "/".join(path))
