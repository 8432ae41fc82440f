"""Files, with the calls of Windows.

Files are opened by CreateFileW with the right to delete them meanwhile, which `open` of Python does
not give. The engine also closes a segment before it removes it. Then nothing depends on when an
older Windows frees the name. A file with a mode for its owner alone is created with a list of who
may use it: its owner, the system and administrators.

Windows cannot sync a directory. What is promised of names rests on the file system. NTFS and ReFS
write changes of names to their journal in order. A sync of a file writes the journal, and a rename
waits for it (MOVEFILE_WRITE_THROUGH). Any other file system is refused. Sources: "CreateFileW",
"MoveFileExW", "FlushFileBuffers", "Security Descriptor String Format" in the documentation of
Windows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final, TypeVar

from strongroom.platform import UnsupportedSystem
from strongroom.platform.windows import kernel as api
from strongroom.platform.windows.kernel import kernel

T = TypeVar("T")

# Full access for the owner (OW), the system (SY), administrators (BA); nothing is inherited (P).
_PRIVATE_FILE: Final = "D:P(A;;FA;;;OW)(A;;FA;;;SY)(A;;FA;;;BA)"
# The same for what is created in the directory later (OICI).
_PRIVATE_DIRECTORY: Final = "D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
_JOURNALLED: Final = ("NTFS", "ReFS")
# A virus scanner, or a reader of ours, may have a file open at the moment, and a file that is being
# replaced cannot be opened: for how long is tried again.
_PAUSE_S: Final = 0.02
_TRIES: Final = 100
_never = threading.Event()
# Reads and writes at an offset move the descriptor's position, so those of one descriptor follow
# each other. Descriptors share these locks.
_turns: Final = tuple(threading.Lock() for _ in range(64))


def open_file(
    path: str,
    flags: int,
    mode: int = 0o600,
    *,
    follows_links: bool = True,
    keeps_name: bool = False,
) -> int:
    access = 0 if flags & os.O_WRONLY else api.GENERIC_READ
    access |= api.GENERIC_WRITE if flags & (os.O_WRONLY | os.O_RDWR) else 0
    share = api.SHARE_READ_WRITE | (0 if keeps_name else api.SHARE_DELETE)
    disposition = api.OPEN_ALWAYS if flags & os.O_CREAT else api.OPEN_EXISTING
    if flags & os.O_CREAT and flags & os.O_EXCL:
        disposition = api.CREATE_NEW
    attributes = api.ATTRIBUTE_NORMAL | (0 if follows_links else api.FLAG_OPEN_REPARSE_POINT)
    sddl = None if mode & 0o077 else _PRIVATE_FILE
    return kernel().open_file(path, access, share, disposition, attributes, sddl)


def open_reader(path: str) -> BinaryIO:
    descriptor = _patiently(lambda: open_file(path, os.O_RDONLY))
    return os.fdopen(descriptor, "rb", buffering=0)


def open_past_cache(path: str) -> int:
    """Windows gets all writes through its cache."""
    return open_file(path, os.O_WRONLY)


def is_past_cache(descriptor: int) -> bool:
    return False


def use_cache(descriptor: int) -> bool:
    return False


def pread(descriptor: int, length: int, offset: int) -> bytes:
    with _turns[descriptor % len(_turns)]:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, length)


def pwrite(descriptor: int, data: bytes | memoryview, offset: int) -> int:
    with _turns[descriptor % len(_turns)]:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)


def pwritev(descriptor: int, data: Sequence[memoryview], offset: int) -> int:
    written = 0
    for one in data:
        count = pwrite(descriptor, one, offset + written)
        written += count
        if count < len(one):
            break
    return written


def start_write_back(descriptor: int, offset: int, length: int) -> None: ...


def forget_cached(descriptor: int, offset: int, length: int) -> None:
    """Windows has no such hint for a file that is open."""
    del descriptor, offset, length


def sync_data(descriptor: int) -> None:
    sync_file(descriptor)


def sync_file(descriptor: int) -> None:
    """The C library calls FlushFileBuffers, which flushes the drive too."""
    os.fsync(descriptor)


def sync_directory(path: str) -> None:
    """What this rests on is said at the top of this module."""


def rename(source: str, target: str) -> None:
    flags = api.MOVE_REPLACE_EXISTING | api.MOVE_WRITE_THROUGH
    _patiently(lambda: kernel().move(source, target, flags))


def unlink(path: str) -> None:
    _patiently(lambda: os.unlink(path))


def make_directory(path: str) -> None:
    kernel().make_directory(path, _PRIVATE_DIRECTORY)


def protect_new_files(directory: str) -> None:
    kernel().protect(directory, _PRIVATE_DIRECTORY)


def refuse_unsafe_volume(path: str) -> None:
    """Raises UnsupportedSystem."""
    name = kernel().file_system(path)
    if name not in _JOURNALLED:
        raise UnsupportedSystem(
            f"{path} is on a volume with {name or 'an unknown file system'}. Only "
            f"{' and '.join(_JOURNALLED)} keep names over a power cut, and private files private: "
            "choose a folder on such a volume, or serve with --in-memory"
        )


def free_bytes(path: str) -> int:
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return kernel().free_bytes(folder)


def give_to_owner_of(path: str, made: int | str) -> None:
    """Administrators may use every file anyway."""


def rights_of_others(descriptor: int) -> str:
    """The access list of the folder decides, and its mode tells nothing."""
    return ""


def _patiently(act: Callable[[], T]) -> T:
    """Call `act`, and again for two seconds while another program keeps it from the file.

    Raises: OSError.
    """
    for _ in range(_TRIES - 1):
        try:
            return act()
        except PermissionError:
            _never.wait(_PAUSE_S)
    return act()
