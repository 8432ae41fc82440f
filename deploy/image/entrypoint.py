#!/usr/bin/python3 -ISB
"""What starts in the image before any command: root gives up all its rights, then the command runs.

Lives here: what root does first (files that only it can read, an empty /data), and the end of its
rights. Must not live here: the commands. Only modules of the standard library that load quickly are
used, since Python starts once more for the command itself.

It has the names of the image's commands too (`strongroom`, `azurite` and its like), so that a
container that is started with another entry point than the image's gives up its rights as well.

Sources: capabilities(7), prctl(2), memfd_create(2); the order of setgroups, setresgid and setresuid
is that of credentials(7).
"""

import ctypes
import fcntl
import os
import sys

USER = 10001
DATA = "/data"
# Where the commands lie that the names on PATH stand for.
COMMANDS = "/usr/lib/strongroom/bin"
SETTINGS, DATA_UNUSABLE, NOT_FOUND = 3, 4, 127  # exit codes, as those of `strongroom`

# Flags that name a file to be read, of all commands.
_FILE_FLAGS = (
    *("--cert", "--key", "--pfx", "--pfx-password-file", "--accounts-file", "--roles-file"),
    *("--oauth-keys", "--setup", "--config", "--store-file"),
)
_FILE_VARIABLES = ["STRONGROOM_" + flag[2:].replace("-", "_").upper() for flag in _FILE_FLAGS]
_DATA_FLAGS = ("--data", "--location", "-l")
_IN_MEMORY_FLAGS = ("--in-memory", "--inMemoryPersistence")
_SILENT_FLAGS = ("--silent", "-s")
_NOT_SERVING_FLAGS = ("--help", "-h", "--version")
_AZURITES = "strongroom-data"  # where the commands of the emulator keep data, below their folder
# What the server itself writes in a data directory; a folder may hold more.
_SERVERS_OWN = ("FORMAT", "LOCK", "records.sqlite", "segments")
_FILE_BYTES_MAX = 16 * 1024 * 1024

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES_MAX = 64


class Refused(Exception):
    """The container cannot be started like this. Arguments: the exit code, the text."""


def main(arguments: list[str]) -> None:
    """Give up root's rights if this is root, then become the command. Never returns."""
    try:
        command = _command(arguments)
        if os.geteuid() == 0:
            opened = _open_files(command)
            make_own(DATA)
            give_up_rights()
            command = _with_private_copies(command, opened)
            os.environ["HOME"] = DATA
        else:
            _forbid_new_rights()
        _check_data(command)
        os.execvp(command[0], command)
    except Refused as refusal:
        code, text = refusal.args
    except FileNotFoundError:
        code, text = NOT_FOUND, f"there is no command {command[0]!r} in this image"
    except OSError as error:
        code, text = SETTINGS, str(error)
    print(f"strongroom: {text}", file=sys.stderr)
    sys.exit(code)


def _command(arguments: list[str]) -> list[str]:
    """Return the command to execute: by this program's own name, else by its arguments."""
    name, *rest = arguments
    known = os.path.basename(name)
    if not os.path.exists(os.path.join(COMMANDS, known)):
        if not rest:
            raise Refused(2, "no command is given; see `strongroom --help`")
        known, *rest = rest
    own = os.path.join(COMMANDS, known)
    return [own if "/" not in known and os.path.exists(own) else known, *rest]


# Files that only root can read.


def _file_flags(command: list[str]) -> list[tuple[int, str, str]]:
    """Return the position, the flag and the path of each file that a command is to read."""
    found = []
    for place, word in enumerate(command):
        flag, separator, value = word.partition("=")
        if flag not in _FILE_FLAGS:
            continue
        if separator:
            found.append((place, flag + "=", value))
        elif place + 1 < len(command):
            found.append((place + 1, "", command[place + 1]))
    return found


def _named_files(command: list[str]) -> list[str]:
    """Return the path of each file that a command is to read, by a flag or by its variable."""
    by_variables = [os.environ[name] for name in _FILE_VARIABLES if name in os.environ]
    return [path for _, _, path in _file_flags(command)] + by_variables


def _open_files(command: list[str]) -> dict[str, int]:
    """Open, as root, the files that a command is to read."""
    opened = {}
    for path in _named_files(command):
        try:
            opened[path] = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # the command itself says what is wrong
    return opened


def _with_private_copies(command: list[str], opened: dict[str, int]) -> list[str]:
    """Return the command with a copy in memory for each file that its user cannot read. Variables
    that name such a file are changed too.

    Arguments:
        opened: descriptors of the files, opened by root.
    """
    changed = list(command)
    copies: dict[str, str] = {}
    for path, descriptor in opened.items():
        if not os.access(path, os.R_OK):
            copies[path] = _private_copy(descriptor, path)
            if not set(_SILENT_FLAGS) & set(command):
                _say(f"only root can read {path}. It was read now; a new one needs a restart")
    for place, prefix, path in _file_flags(command):
        if path in copies:
            changed[place] = prefix + copies[path]
    for name in _FILE_VARIABLES:
        if os.environ.get(name) in copies:
            os.environ[name] = copies[os.environ[name]]
    return changed


def _private_copy(descriptor: int, path: str) -> str:
    """Return the path of a copy that lies in memory and ends with the process."""
    data = b""
    while len(data) <= _FILE_BYTES_MAX and (piece := os.read(descriptor, 1024 * 1024)):
        data += piece
    if len(data) > _FILE_BYTES_MAX:
        raise Refused(SETTINGS, f"{path} has more than {_FILE_BYTES_MAX} bytes")
    copy = os.memfd_create(os.path.basename(path), os.MFD_ALLOW_SEALING)
    with open(copy, "wb", closefd=False) as file:
        file.write(data)
    os.fchmod(copy, 0o400)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, seals)
    os.set_inheritable(copy, True)
    return f"/proc/self/fd/{copy}"


# The data directory.


def make_own(folder: str) -> None:
    """Give an empty folder to the server's user. What is in a folder is never given away."""
    try:
        found = os.lstat(folder)
        if found.st_uid == USER or set(os.listdir(folder)) - {"lost+found"}:
            return
        os.chown(folder, USER, USER, follow_symlinks=False)
    except OSError:
        return  # a read-only or foreign folder: the check says so


def _check_data(command: list[str]) -> None:
    """Refuse a data directory that the server's user cannot write. Raises Refused."""
    folder = _data_of(command)
    if folder is None:
        return
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    for place in (folder, *(os.path.join(folder, name) for name in _SERVERS_OWN)):
        if os.path.exists(place) and not os.access(place, os.W_OK):
            raise Refused(DATA_UNUSABLE, _unwritable(folder, place))


def _data_of(command: list[str]) -> str | None:
    """Return the folder in which a command will keep data; None if it keeps none."""
    name = os.path.basename(command[0])
    serves = name.startswith("azurite") or (name == "strongroom" and command[1:2] == ["serve"])
    words = command[1:]
    if not serves or set(words) & {*_IN_MEMORY_FLAGS, *_NOT_SERVING_FLAGS}:
        return None
    folder = os.environ.get("STRONGROOM_DATA", DATA) if name == "strongroom" else "."
    for place, word in enumerate(words):
        flag, separator, value = word.partition("=")
        if flag in _DATA_FLAGS:
            folder = value if separator else (words[place + 1 : place + 2] or [folder])[0]
    return os.path.abspath(folder if name == "strongroom" else os.path.join(folder, _AZURITES))


def _unwritable(folder: str, place: str) -> str:
    user, owner = os.geteuid(), os.lstat(place).st_uid
    return (
        f"user {user} cannot write {place}, which belongs to user {owner}. Nothing was changed. "
        f"To give everything in {folder} to the server, stop it, and run once, with the same "
        f"volume and image: docker run --rm --user 0 --entrypoint chown -v VOLUME:{folder} IMAGE "
        f"-R {user}:{user} {folder} - or start the container with --user {owner}"
    )


# The end of root's rights.


def give_up_rights() -> None:
    """Become the server's user for good: no groups, no capabilities, no way to new ones.

    Raises: Refused if a right is left, or cannot be given up.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _forbid_new_rights()
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    # Without CAP_SETPCAP this fails. What it limits, capabilities of new programs, is forbidden
    # above.
    for capability in range(_CAPABILITIES_MAX):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    try:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    except OSError as error:
        raise Refused(
            SETTINGS,
            f"root cannot become user {USER} in this container ({error.strerror}). Start it as "
            f"that user (--user {USER}:{USER}), or leave root the capabilities SETUID and SETGID.",
        ) from None
    _clear_capabilities(libc)
    left = rights_left()
    if left:
        raise Refused(SETTINGS, f"rights of root are left, so nothing is started: {left}")


def _forbid_new_rights() -> None:
    """No program that this process becomes gets rights that it has not, setuid or not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise Refused(SETTINGS, f"no_new_privs cannot be set: {os.strerror(ctypes.get_errno())}")


def _clear_capabilities(libc: ctypes.CDLL) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if libc.capset(header, nothing):
        raise Refused(SETTINGS, f"capabilities stay: {os.strerror(ctypes.get_errno())}")


def rights_left() -> str:
    """Return what a process still has of root, as text; empty = nothing."""
    left = []
    if {*os.getresuid(), *os.getresgid()} != {USER} or os.getgroups():
        left.append(f"users {os.getresuid()}, groups {os.getresgid()} and {os.getgroups()}")
    with open("/proc/self/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        if int(fields[name], 16):
            left.append(f"{name} {fields[name].strip()}")
    if fields["NoNewPrivs"].strip() != "1":
        left.append("no_new_privs is not set")
    try:
        os.setuid(0)
    except PermissionError:
        return ", ".join(left)
    return ", ".join([*left, "setuid(0) succeeds"])


def _say(text: str) -> None:
    print(f"strongroom: {text}.", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv)
