"""Rules about clocks, randomness, the environment and the system, and about skipped tests.

Names are resolved through the file's imports, so `from time import time as t; t` is seen too. A
mention counts as a use: `default_factory=uuid4` uses randomness like a call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.sources import PACKAGE, Source, nodes

# asyncio's loop.time() is not listed: it times sockets, and no stored value comes from it.
CLOCK_AND_CHANCE = {
    "datetime.date.today", "datetime.datetime.now", "datetime.datetime.today",
    "datetime.datetime.utcnow", "email.utils.localtime", "os.getrandom", "os.urandom",
    "ssl.RAND_bytes", "time.clock_gettime", "time.clock_gettime_ns", "time.monotonic",
    "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns", "time.process_time",
    "time.time", "time.time_ns", "uuid.uuid1", "uuid.uuid4",
}  # fmt: skip
CHANCE_MODULES = ("random.", "secrets.")
NOT_CHANCE = {"secrets.compare_digest"}
# These read the clock only without a time argument: name -> arguments that they need.
CLOCK_WHEN_BARE = {
    "email.utils.formatdate": 1, "time.asctime": 1, "time.ctime": 1, "time.gmtime": 1,
    "time.localtime": 1, "time.strftime": 2,
}  # fmt: skip
CLOCK_MODULES = {
    PACKAGE / "clock.py",
    PACKAGE / "coordination/clock.py",
    # A script of its own that imports nothing of the package.
    PACKAGE / "coordination/processes/child_guard.py",
}

ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}
ENVIRONMENT_READERS = ("config.py", "cli", "testing")
ENVIRONMENT_MODULES = {PACKAGE / "coordination/options/environment.py"}

# Not on every system, or not the same there: src/strongroom/platform offers them all.
SYSTEM_MODULES = {"fcntl", "grp", "msvcrt", "platform", "pwd", "resource", "termios"}
SYSTEM_NAMES = {
    "asyncio.new_event_loop", "ctypes.CDLL", "ctypes.WinDLL", "os.O_CLOEXEC", "os.O_DIRECT",
    "os.O_DIRECTORY", "os.O_NOFOLLOW", "os.chown", "os.copy_file_range", "os.fchmod", "os.fchown",
    "os.fdatasync", "os.fork", "os.fsync", "os.geteuid", "os.getuid", "os.killpg", "os.name",
    "os.pipe2", "os.posix_fadvise", "os.posix_fallocate", "os.pread", "os.preadv", "os.pwrite",
    "os.pwritev", "os.rename", "os.replace", "os.sendfile", "os.setsid", "os.statvfs", "os.sync",
    "os.sysconf", "os.uname", "select.epoll", "select.poll", "signal.SIGCHLD", "signal.SIGHUP",
    "signal.SIGKILL", "signal.SIGUSR1", "signal.SIGUSR2", "socket.AF_UNIX", "socket.SO_REUSEADDR",
    "socket.SO_REUSEPORT", "sys.platform",
}  # fmt: skip
SYSTEM_PLACES = (
    PACKAGE / "platform",
    # It runs on Linux only, and imports nothing of the package.
    PACKAGE / "coordination/processes/child_guard.py",
)

SKIPS = {
    "pytest.importorskip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail",
    "pytest.skip", "pytest.xfail", "unittest.SkipTest", "unittest.skip", "unittest.skipIf",
    "unittest.skipUnless",
}  # fmt: skip


def clock_or_chance(source: Source) -> list[str]:
    """Return a complaint for each use of time or randomness outside of the clock modules.

    Time and randomness are arguments, so that a test can set both.
    """
    if source.path in CLOCK_MODULES:
        return []
    names = _imported_names(source)
    complaints = [
        f"{source.path}:{node.lineno} {name} belongs to clock.py"
        for node, name in _mentions(source, names)
        if name not in NOT_CHANCE and (name in CLOCK_AND_CHANCE or name.startswith(CHANCE_MODULES))
    ]
    return complaints + _bare_clock_calls(source, names)


def environment(source: Source) -> list[str]:
    """Return a complaint for each use of the environment below the command line.

    There, settings are values.
    """
    top = source.path.relative_to(PACKAGE).parts[0]
    if top in ENVIRONMENT_READERS or source.path in ENVIRONMENT_MODULES:
        return []
    return _uses(source, ENVIRONMENT, "belongs to config.py or cli")


def of_one_system(source: Source) -> list[str]:
    """Return a complaint for each use of what only some systems have, outside of `platform`.

    There, each use keeps a promise on every system, or refuses with a text.
    """
    if any(source.path.is_relative_to(place) for place in SYSTEM_PLACES):
        return []
    reason = "belongs to platform/, which offers it on every system"
    modules = {
        alias.name: node.lineno
        for node in nodes(source)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        node.module: node.lineno
        for node in nodes(source)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }
    complaints = [
        f"{source.path}:{line} {name} {reason}"
        for name, line in modules.items()
        if name in SYSTEM_MODULES
    ]
    return complaints + _uses(source, SYSTEM_NAMES, reason)


def skips(source: Source) -> list[str]:
    """Return a complaint for each test that is skipped or expected to fail: it would prove
    nothing."""
    return _uses(source, SKIPS, "takes a test out of the proof")


def _uses(source: Source, banned: set[str], reason: str) -> list[str]:
    mentions = _mentions(source, _imported_names(source))
    return [
        f"{source.path}:{node.lineno} {name} {reason}" for node, name in mentions if name in banned
    ]


def _bare_clock_calls(source: Source, names: dict[str, str]) -> list[str]:
    complaints = []
    for node in nodes(source):
        if isinstance(node, ast.Call):
            name = _dotted(node.func, names)
            needed = CLOCK_WHEN_BARE.get(name, 0)
            if len(node.args) + len(node.keywords) < needed:
                complaints.append(
                    f"{source.path}:{node.lineno} {name} without a time reads the clock"
                )
    return complaints


def _imported_names(source: Source) -> dict[str, str]:
    """Map each local name to the dotted name that it was imported from."""
    names: dict[str, str] = {}
    for node in nodes(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _mentions(source: Source, names: dict[str, str]) -> Iterator[tuple[ast.expr, str]]:
    for node in nodes(source):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            name = _dotted(node, names)
            if name:
                yield node, name


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""
