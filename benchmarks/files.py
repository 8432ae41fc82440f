"""Files over SMB, beside Samba's smbd, and over REST: large and small files, listings, requests.

smbclient is the client of both servers, which take turns. Both write to the same disk. Strongroom
answers a write when it is durable. With its defaults, smbd answers when the kernel has the data.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.endpoint import ACCOUNT, ACCOUNT_KEY, BLOCK_BLOB, Endpoint, account_sas
from benchmarks.engine import CONNECTION, CYCLE, Load
from benchmarks.results import Row, ratio_of, row
from benchmarks.samba import (
    ENCRYPTED,
    SHARE,
    SIGNED,
    SMBD,
    SYNCED_SHARE,
    SmbShare,
    has_smbd,
    smbd,
    write_login,
)
from benchmarks.servers import STRONGROOM, Server, free_ports, strongroom_command
from benchmarks.turns import Turns
from benchmarks.workloads import make_container, put_blob

_MIB: Final = 1 << 20
LARGE_MIB: Final = 256
_SMALL_FILES: Final = 200
_SMALL_BYTES: Final = 4096
_LISTED: Final = 10_000
_CONNECTIONS: Final = 32
_UPDATE: Final = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{_SMALL_BYTES - 1}"}
# Work that takes seconds is repeated so many times, whatever the slices of the scope.
_ROUNDS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Served:
    """A running Strongroom, with a share and the services that are measured beside it."""

    share: SmbShare
    files: Endpoint
    blobs: Endpoint


def files(folder: Path, turns: Turns) -> Iterator[Row]:
    """Yield all rows; those beside smbd have no ratio if smbd is not installed."""
    work = folder / "work"
    work.mkdir(parents=True)
    (work / "large").write_bytes(os.urandom(_MIB) * LARGE_MIB)
    (work / "small").write_bytes(os.urandom(_SMALL_BYTES))
    file_port, smb_port = free_ports(2)

    def command(data: Path, ports: list[int]) -> list[str]:
        flags = ["--file-port", str(file_port), "--smb", "--smb-port", str(smb_port)]
        return [*strongroom_command(data, ports), *flags, "--smb-encryption", "offered"]

    server = Server(STRONGROOM, command, folder / "strongroom")
    server.start()
    try:
        login = write_login(folder, ACCOUNT, ACCOUNT_KEY)
        sas = account_sas("bqtf")
        ours = Served(
            SmbShare(STRONGROOM, smb_port, server.pid, login),
            Endpoint(file_port, sas),
            Endpoint(server.ports[0], sas),
        )
        ours.files.make(f"/{SHARE}?restype=share")
        rounds = Turns(turns.slice_s, min(turns.count, _ROUNDS_MAX), turns.warm_up_s)
        if has_smbd():
            with smbd(folder / "smbd") as (other, shown):
                yield from _over_smb([ours.share, other], ours, shown, work, rounds)
        else:
            print("smbd is not installed: files are measured without it", file=sys.stderr)
            yield from _over_smb([ours.share], ours, None, work, rounds)
        yield from _over_rest(ours, work, turns)
    finally:
        server.discard()


def _over_smb(
    shares: Sequence[SmbShare], ours: Served, shown: Path | None, work: Path, turns: Turns
) -> Iterator[Row]:
    # mypy infers no type for a lambda with a default argument: hence the ignores here.
    for protection, word in ((ENCRYPTED, "encrypted"), (SIGNED, "signed")):
        for command, what in (("put large", "put"), ("get large back", "get")):
            yield _compared(
                f"SMB {what} {LARGE_MIB} MiB, {word}", "MB/s", shares, turns,
                lambda share, command=command, how=protection: share.run(  # type: ignore[misc]
                    [command], work, how
                ),
                LARGE_MIB * _MIB / 1e6, per_unit="MiB", units=LARGE_MIB,
            )  # fmt: skip
    puts = [f"put small small-{number}" for number in range(_SMALL_FILES)]
    gets = [f"get small-{number} back" for number in range(_SMALL_FILES)]
    synced = [replace(one, share=SYNCED_SHARE) if one.name == SMBD else one for one in shares]
    for name, commands, compared in (
        ("put files of 4 KiB", puts, shares),
        ("put files of 4 KiB, smbd with `sync always = yes`", puts, synced),
        ("get files of 4 KiB", gets, shares),
    ):
        yield _compared(
            f"SMB {name}", "files/s", compared, turns,
            lambda share, commands=commands: share.run(commands, work),  # type: ignore[misc]
            _SMALL_FILES, per_unit="file", units=_SMALL_FILES,
        )  # fmt: skip
    ours.files.make(f"/{SHARE}/many?restype=directory")
    empty = {"x-ms-type": "file", "x-ms-content-length": "0"}
    path = f"/{SHARE}/many/a-file-{CYCLE}"
    ours.files.fill(ours.files.step("create", "PUT", path, 201, headers=empty), _LISTED)
    if shown is not None:
        (shown / "many").mkdir()
        for number in range(_LISTED):
            (shown / "many" / f"a-file-{number:08}").touch()
    yield _compared(
        "SMB list 10,000 files", "entries/s", shares, turns,
        lambda share: share.run(["cd many", "ls"], work),
        _LISTED, per_unit="entry", units=_LISTED,
    )  # fmt: skip


def _compared(
    name: str,
    unit: str,
    shares: Sequence[SmbShare],
    turns: Turns,
    run: Callable[[SmbShare], float],
    amount: float,
    *,
    per_unit: str,
    units: int,
) -> Row:
    """Return a rate beside smbd's, with the CPU time of each server in the note.

    Arguments:
        run: does the work once, and returns the seconds.
        amount: the amount of work in one run, in the unit before the `/s`.
        units: the number of units for the CPU time per unit.
    """
    rates: dict[str, list[float]] = {share.name: [] for share in shares}
    used_s: dict[str, list[float]] = {share.name: [] for share in shares}
    for share in turns.of(shares):
        with share.counted_cpu(used_s[share.name]):
            rates[share.name].append(amount / run(share))
    ours, others = rates[STRONGROOM], rates.get(SMBD, [])
    costs = [
        f"{name} {1000 * statistics.median(used) / units:.2f} ms" for name, used in used_s.items()
    ]
    return row(
        name, 1, unit, statistics.median(ours), statistics.median(others) if others else None,
        ratio=ratio_of(ours, others), slices=(tuple(ours), tuple(others)),
        note=f"CPU per {per_unit}: {', '.join(costs)}", other=SMBD,
    )  # fmt: skip


def _over_rest(ours: Served, work: Path, turns: Turns) -> Iterator[Row]:
    body, file = b"x" * _SMALL_BYTES, {"x-ms-type": "file"}
    file["x-ms-content-length"] = str(_SMALL_BYTES)
    make_container(ours.blobs, "/beside")
    put = ours.blobs.step("put", "PUT", f"/beside/{CYCLE}", 201, headers=BLOCK_BLOB, body=body)
    ours.files.make(f"/{SHARE}/ranges?restype=directory")
    path = f"/{SHARE}/ranges/{CYCLE}"
    create = ours.files.step("create", "PUT", path, 201, headers=file)
    write = ours.files.step("write", "PUT", f"{path}?comp=range", 201, headers=_UPDATE, body=body)
    own = f"/{SHARE}/ranges/of-{CONNECTION}"
    first = ours.files.step("first", "PUT", own, 201, headers=file)
    over = ours.files.step("over", "PUT", f"{own}?comp=range", 201, headers=_UPDATE, body=body)
    made, ranges, blobs = [], [], []
    for _ in range(turns.count):
        load = Load((create, write), _CONNECTIONS, turns.slice_s, turns.slice_s / 4)
        report = ours.files.load(load)
        made.append(report.step("write").count / report.window_s)
        load = Load((first, over), _CONNECTIONS, turns.slice_s, turns.slice_s / 4, prologue=1)
        report = ours.files.load(load)
        ranges.append(report.step("over").count / report.window_s)
        report = ours.blobs.load(Load((put,), _CONNECTIONS, turns.slice_s, turns.slice_s / 4))
        blobs.append(report.step("put").count / report.window_s)
    yield row(
        "Create File and Put Range 4 KiB", _CONNECTIONS, "files/s", statistics.median(made), None,
        slices=(tuple(made), ()),
    )  # fmt: skip
    yield row(
        "Put Range 4 KiB", _CONNECTIONS, "1/s", statistics.median(ranges), statistics.median(blobs),
        ratio=ratio_of(ranges, blobs), slices=(tuple(ranges), tuple(blobs)), other="Put Blob 4 KiB",
    )  # fmt: skip
    yield _beside_a_put(ours, work, turns)


def _beside_a_put(ours: Served, work: Path, turns: Turns) -> Row:
    """Measure a small GET alone, and while smbclient puts a large file."""
    small = put_blob(ours.blobs, "/beside/one")
    ours.blobs.fill(small, 1)
    get = ours.blobs.step("get", "GET", "/beside/one", 200)
    alone, beside = [], []
    for _ in range(min(turns.count, _ROUNDS_MAX)):
        alone.append(ours.blobs.load(Load((get,), 1, 2.0, 0.1)).step("get").p99_ms)
        with ThreadPoolExecutor(1) as pool:
            putting = pool.submit(ours.share.run, ["put large"], work)
            beside.append(ours.blobs.load(Load((get,), 1, 2.0, 0.5)).step("get").p99_ms)
            putting.result()
    added = [after - before for after, before in zip(beside, alone, strict=True)]
    note = f"p99 {statistics.median(alone):.1f} ms alone, {statistics.median(beside):.1f} ms beside"
    return row(
        f"small GET beside an SMB put of {LARGE_MIB} MiB: p99 added", 1, "ms",
        statistics.median(added), None, slices=(tuple(added), ()), note=note,
    )  # fmt: skip


def samba_version() -> str | None:
    """Return the version of the installed smbd; None if there is none."""
    if not has_smbd():
        return None
    ran = subprocess.run(["smbd", "--version"], capture_output=True, text=True)
    return ran.stdout.strip().removeprefix("Version ")
