"""The kernel's figures of a process tree and of the machine: CPU, memory, file system."""

import os
import platform
import re
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_SAMPLE_EVERY_S: Final = 0.1
_CALLS: Final = 200_000


def process_tree(pid: int) -> list[int]:
    """Return the process and all its running descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        fields = _stat_fields(int(entry.name)) if entry.name.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        found.append(queue.pop())
        queue += children.get(found[-1], [])
    return found


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; none if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def cpu_s(pid: int) -> float:
    """Return the CPU seconds, user and system, that a process tree has used."""
    fields = [_stat_fields(member) for member in process_tree(pid)]
    return sum(int(f[11]) + int(f[12]) for f in fields if f) / _TICKS_PER_S


def cpu_with_children_s(pid: int) -> float:
    """Return the CPU seconds of a process tree, including its children that have ended."""
    fields = _stat_fields(pid)
    ended = sum(int(field) for field in fields[13:15]) / _TICKS_PER_S
    return cpu_s(pid) + ended


def pss_mib(pid: int) -> float:
    """Return the memory of a process tree now; pages that processes share count once."""
    return sum(_kib(member, "smaps_rollup", "Pss") for member in process_tree(pid)) / 1024


def peak_rss_mib(pid: int) -> float:
    """Return the sum of the peak resident sizes (VmHWM) of the processes in a tree."""
    return sum(_kib(member, "status", "VmHWM") for member in process_tree(pid)) / 1024


def rss_mib(pid: int) -> float:
    """Return the resident size of a process tree now, including mapped files."""
    return sum(_kib(member, "status", "VmRSS") for member in process_tree(pid)) / 1024


def anonymous_mib(pid: int) -> float:
    """Return the resident memory of a process tree now that no file backs."""
    return sum(_kib(member, "status", "RssAnon") for member in process_tree(pid)) / 1024


def _kib(pid: int, file: str, field: str) -> int:
    try:
        text = Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return 0
    match = re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE)
    return int(match.group(1)) if match else 0


class PeakPss:
    """Samples the memory of a process tree in the background while a `with` block runs."""

    def __init__(self, pid: int) -> None:
        self.mib = 0.0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "PeakPss":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(_SAMPLE_EVERY_S):
            self.mib = max(self.mib, pss_mib(self._pid))


class Machine(msgspec.Struct, frozen=True):
    """The machine that produced a result."""

    processor: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    python_calls_per_s: int
    file_system: str
    load_average: float


def machine(data_folder: Path) -> Machine:
    """Return the facts of this machine, with the file system of the servers' data."""
    processors = re.findall(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    total = re.search(r"^MemTotal:\s+(\d+)", _read("/proc/meminfo"), re.MULTILINE)
    return Machine(
        processor=processors[0] if processors else platform.machine(),
        cores=os.cpu_count() or 0,
        memory_gib=round(int(total.group(1)) / 2**20, 1) if total else 0.0,
        kernel=platform.release(),
        python=platform.python_version(),
        python_calls_per_s=_calls_per_s(),
        file_system=_file_system(data_folder),
        load_average=round(os.getloadavg()[0], 2),
    )


def _calls_per_s() -> int:
    """Return the speed of this build of the interpreter: builds of one version differ by a
    third."""

    def called(number: int) -> int:
        return number + 1

    fastest_s = float("inf")
    for _ in range(5):
        began_s = time.perf_counter()
        for number in range(_CALLS):
            called(number)
        fastest_s = min(fastest_s, time.perf_counter() - began_s)
    return round(_CALLS / fastest_s)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _file_system(folder: Path) -> str:
    """Return the type of the mount with the longest matching path."""
    resolved = folder.resolve()
    mounts = [line.split()[1:3] for line in _read("/proc/mounts").splitlines()]
    matching = [(path, kind) for path, kind in mounts if resolved.is_relative_to(path)]
    return max(matching, key=lambda mount: len(mount[0]))[1] if matching else "unknown"
