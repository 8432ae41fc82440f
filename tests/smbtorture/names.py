"""Names of smbtorture's tests: the suites that count, and lists of names in files.

Lives here: reading `smbtorture --list`, and reading and writing the list files beside this module.
Must not live here: running anything (running.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
# Each name includes all tests below it.
SUITES: Final = (
    *("sharemode", "check-sharemode", "deny", "delete-on-close-perms", "lock", "oplock", "lease"),
    *("dir", "rename", "compound", "compound_find", "compound_async", "read", "rw", "credits"),
    *("fileid", "notify", "timestamps", "create", "connect", "tcon", "mkdir", "openattr"),
    *("winattr", "session-id", "secleak", "maximum_allowed", "charset", "ioctl", "durable-open"),
    *("durable-v2-open", "replay", "getinfo", "setinfo", "session"),
)
# Of this suite only these tests count; the others test features that Azure Files does not have.
_IOCTL: Final = ("smb2.ioctl.copy_chunk", "smb2.ioctl.req_")
_NOTE: Final = " # "


def short_name(listed: str) -> str:
    """Return the name by which a test is run, from the name that `--list` prints.

    The only test of a case is listed with its name doubled.
    """
    case, _, test = listed.rpartition(".")
    return case if case.endswith(f".{test}") else listed


def suite_of(name: str) -> str:
    """Return `lock` for `smb2.lock.cancel`."""
    return name.split(".")[1]


def counted(listing: str) -> list[str]:
    """The names of `smbtorture --list` that belong to SUITES, in the order of SUITES."""
    names = [short_name(line.strip()) for line in listing.splitlines() if "." in line]
    of_smb2 = [name for name in names if name.startswith("smb2.")]
    return [
        name
        for suite in SUITES
        for name in of_smb2
        if suite_of(name) == suite and (suite != "ioctl" or name.startswith(_IOCTL))
    ]


def read_list(text: str) -> dict[str, str]:
    """Names with their notes, of a list file: `name` or `name # note` on each line.

    Lines that begin with `#`, and empty ones, are skipped. Raises ValueError for a doubled name.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, note = line.partition(_NOTE)
        if name.strip() in found:
            raise ValueError(f"{name.strip()} is listed twice")
        found[name.strip()] = note.strip()
    return found


def write_list(header: Iterable[str], names: Mapping[str, str] | Iterable[str]) -> str:
    """A list file: the header as comments, then a name a line, with its note if it has one."""
    notes = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
    lines = [f"{name}{_NOTE}{note}" if note else name for name, note in notes.items()]
    return "\n".join([*(f"# {line}".rstrip() for line in header), *lines, ""])


def path_of(name: str) -> Path:
    """Return the path of the list file of that name."""
    return FOLDER / f"{name}.txt"


def load(name: str) -> dict[str, str]:
    """The list file of that name beside this module."""
    return read_list(path_of(name).read_text(encoding="utf-8"))
