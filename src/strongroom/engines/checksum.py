"""CRC64-NVME, the checksum of every content and of the header `x-ms-content-crc64`.

Lives here: the only import of the native package. Source: NVM Express Command Set Specification,
"64b CRC"; crc64(b"123456789") = 0xAE8B14860A799888.
"""

from __future__ import annotations

from awscrt import checksums


def crc64(data: bytes | bytearray | memoryview, previous: int = 0) -> int:
    """Return the CRC64 of `data`, continued from `previous`. Other threads can run during the
    computation."""
    return int(checksums.crc64nvme(data, previous))
