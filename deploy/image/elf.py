"""Which shared libraries a program or library names, read from its file.

Lives here: the dynamic section of 64-bit little-endian ELF files. Source: the System V ABI,
chapters 4 and 5.
"""

from __future__ import annotations

import struct

_DYNAMIC_TYPE, _NEEDED, _STRING_TABLE = 6, 1, 5
_SECTION = struct.Struct("<IIQQQQIIQQ")
_ENTRY = struct.Struct("<qQ")


def needed(elf: bytes) -> list[str]:
    """Return the names of the libraries that a file needs, in its own order."""
    (sections_at,) = struct.unpack_from("<Q", elf, 0x28)
    size, count = struct.unpack_from("<HH", elf, 0x3A)
    sections = [_SECTION.unpack_from(elf, sections_at + at * size) for at in range(count)]
    for section in sections:
        if section[1] == _DYNAMIC_TYPE:
            strings_at = sections[section[6]][4]
            return _names(elf, section[4], section[5], strings_at)
    return []


def _names(elf: bytes, start: int, length: int, strings_at: int) -> list[str]:
    names = []
    for tag, value in _ENTRY.iter_unpack(elf[start : start + length // 16 * 16]):
        if tag == _NEEDED:
            at = strings_at + value
            names.append(elf[at : elf.index(b"\0", at)].decode())
    return names
