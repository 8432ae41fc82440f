"""The places that the contract is tried on without any server: a folder, and a pool in memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

from strongroom.engines.bodies.layout import MARK, name_of
from strongroom.engines.bodies.rados.objects import object_name
from tests.engines.bodies.fake_librados import FakeCeph, StoredObject

POOL = "bodies"


class TriedFolder:
    """A folder. See TriedPlace."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"file://{path}"

    def unmark(self) -> None:
        (self.path / MARK).rename(self.path / "aside")

    def remark(self) -> None:
        (self.path / "aside").rename(self.path / MARK)

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        mark = self.path / MARK
        mark.write_bytes(change(mark.read_bytes()))

    def left(self) -> Collection[str]:
        return [one.name for one in self.path.glob("bodies/*/*")]

    def age(self, body_id: int, age_s: int) -> None:
        then = time.time() - age_s
        os.utime(self.path / name_of(body_id), (then, then))

    def put_foreign(self) -> None:
        (self.path / "notes.txt").write_text("mine")


class TriedFake:
    """A pool in memory. See TriedPlace."""

    def __init__(self, ceph: FakeCeph, folder: Path) -> None:
        self.ceph = ceph
        ceph.make_pool(POOL)
        self.configuration = folder / "ceph.conf"
        self.configuration.write_text("[global]\n")
        self.url = f"rados://{POOL}?conf={self.configuration}"

    def unmark(self) -> None:
        self._aside = self.ceph.objects(POOL).pop(MARK)

    def remark(self) -> None:
        self.ceph.objects(POOL)[MARK] = self._aside

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        mark = self.ceph.objects(POOL)[MARK]
        mark.data = change(mark.data)

    def left(self) -> Collection[str]:
        return [name for name in self.ceph.objects(POOL) if name != MARK]

    def age(self, body_id: int, age_s: int) -> None:
        self.ceph.objects(POOL)[object_name(body_id)].changed_at = self.ceph.now - age_s

    def put_foreign(self) -> None:
        self.ceph.objects(POOL)["notes.txt"] = StoredObject(b"mine")
