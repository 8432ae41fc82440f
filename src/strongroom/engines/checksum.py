"""CRC64-NVME, the checksum of every content (and the one of `x-ms-content-crc64`).

Lives here: the one import of the native package. Source: NVM Express Command Set Specification,
"64b CRC"; crc64(b"123456789") = 0xAE8B14860A799888.
"""

from __future__ import annotations

from awscrt import checksums


def crc64(data: bytes | bytearray | memoryview, previous: int = 0) -> int:
    """The CRC64 of `data`, going on from `previous`. Lets other threads run meanwhile."""
    return int(checksums.crc64nvme(data, previous))
