"""CRC64-NVME, the checksum of every content and of the header `x-ms-content-crc64`.

Lives here: the only import of the native package. Source: NVM Express Command Set Specification,
"64b CRC"; crc64(b"123456789") = 0xAE8B14860A799888.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

# By then a server has answered the requests that waited for its start.
_PAUSE_S: Final = 1.0

Native = Callable[[bytes | bytearray | memoryview, int], int]

_native: Native | None = None


def crc64(data: bytes | bytearray | memoryview, previous: int = 0) -> int:
    """Return the CRC64 of `data`, continued from `previous`. Other threads can run during the
    computation.

    Raises: MemoryError: the first call finds no memory for the native package.
    """
    return (_native or load())(data, previous)


def load() -> Native:
    """Import the native package, if no call has done so. It has 12 MB, so a start does not wait
    for it.

    Raises: MemoryError.
    """
    global _native
    if _native is None:
        try:
            from awscrt.checksums import crc64nvme
        except ImportError as error:
            # It was installed with this package, so only its mapping into memory can fail.
            raise MemoryError(f"the package of checksums cannot be loaded: {error}") from error
        _native = crc64nvme
    return _native


async def load_soon() -> None:
    """Load the package shortly after a server's start, before most writes need it."""
    await asyncio.sleep(_PAUSE_S)
    try:
        await asyncio.get_running_loop().run_in_executor(None, load)
    except MemoryError:
        return  # the call that needs it says so
