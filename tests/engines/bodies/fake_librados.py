"""A stand-in for Ceph's C library: what is used of it, over objects in memory, with faults.

Lives here: `FakeCeph`. It is called as the binding calls the library, with pointers and buffers of
ctypes. The library itself, with a cluster, is used in tests/proof/ceph.
"""

from __future__ import annotations

import ctypes
import errno
import fnmatch
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from strongroom.engines.bodies.rados import connection

Steps = list[tuple[Any, ...]]


class StoredObject(msgspec.Struct):
    """An object of a pool."""

    data: bytes = b""
    attributes: dict[str, bytes] = msgspec.field(default_factory=dict)
    changed_at: int = 0


class Fault(NamedTuple):
    """What goes wrong with some calls.

    Attributes:
        kind: "read", "write" or "list".
        names: of objects, as a pattern.
        result: what the call returns; None = it is only held.
        is_late: whether the change happens when `carry_out` is called.
        hold: the call waits for it.
    """

    kind: str
    names: str
    result: int | None = None
    is_late: bool = False
    hold: threading.Event | None = None


class FakeCeph:
    """A cluster, and the library by which it is reached.

    Attributes:
        pools: of each pool and namespace, its objects by their names.
        now: the time of changes.
        faults: at present.
        refused: what `rados_connect` returns, if it fails.
        blocklisted: clusters (clients) that are refused.
        open: clients that were not shut down.
        most_at_once: writes.
        completions: that were not released, with their results.
    """

    def __init__(self) -> None:
        self.pools: dict[tuple[int, str], dict[str, StoredObject]] = {}
        self.ids: dict[str, int] = {}
        self.now = 1_000_000
        self.faults: list[Fault] = []
        self.refused = 0
        self.blocklisted: set[int] = set()
        self.open: set[int] = set()
        self.options: dict[str, str] = {}
        self.writes: list[str] = []
        self.most_at_once = 0
        self._late: list[tuple[tuple[int, str], str, Steps, int | None]] = []
        self._numbers = itertools.count(1)
        self._contexts: dict[int, tuple[int, int, str]] = {}
        self._operations: dict[int, Steps] = {}
        self.completions: dict[int, int] = {}
        self._listings: dict[int, Iterator[str]] = {}
        self._under_way: dict[int, int] = {}
        self._writing = 0
        self._lock = threading.RLock()

    def make_pool(self, name: str) -> None:
        """Make a pool; one of this name is gone."""
        self.ids[name] = next(self._numbers)

    def objects(self, pool: str, namespace: str = "") -> dict[str, StoredObject]:
        """Return the objects of a pool, to be read and changed."""
        return self.pools.setdefault((self.ids[pool], namespace), {})

    def carry_out(self) -> None:
        """Let the changes happen that are late."""
        late, self._late = self._late, []
        for place, name, steps, at in late:
            self._apply(place, name, steps, at)

    @contextmanager
    def failing(
        self,
        kind: str,
        names: str = "*",
        number: int | None = None,
        *,
        is_late: bool = False,
        hold: threading.Event | None = None,
    ) -> Iterator[None]:
        """Let some calls fail meanwhile."""
        fault = Fault(kind, names, None if number is None else -number, is_late, hold)
        self.faults.append(fault)
        try:
            yield
        finally:
            self.faults.remove(fault)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let the binding find this library."""
        with mock.patch.object(connection, "librados", return_value=self):
            yield

    def _found(self, kind: str, name: str, io: Any) -> Fault | None:
        """Return what goes wrong with a call, which may wait first."""
        if self._contexts[io.value][0] in self.blocklisted and kind != "list":
            return Fault(kind, name, -errno.ESHUTDOWN)
        for fault in list(self.faults):
            if fault.kind == kind and fnmatch.fnmatchcase(name, fault.names):
                if fault.hold is not None:
                    fault.hold.wait(60)
                return fault
        return None

    @contextmanager
    def _call(self, io: Any) -> Iterator[None]:
        client = self._contexts[io.value][0]
        assert client in self.open, "a client is used that was shut down"
        with self._lock:
            self._under_way[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way[client] -= 1

    # Clients and pools.

    def rados_create2(self, cluster: Any, name: bytes, user: bytes, flags: int) -> int:
        assert (name, flags) == (b"ceph", 0)
        assert user.startswith(b"client.")
        client = next(self._numbers)
        cluster._obj.value = client
        self.open.add(client)
        self._under_way[client] = 0
        return 0

    def rados_conf_read_file(self, cluster: Any, path: bytes) -> int:
        with open(path, "rb") as file:
            return 0 if b"[global]" in file.read() else -errno.EINVAL

    def rados_conf_set(self, cluster: Any, name: bytes, value: bytes) -> int:
        self.options[name.decode()] = value.decode()
        return 0

    def rados_connect(self, cluster: Any) -> int:
        return self.refused

    def rados_shutdown(self, cluster: Any) -> None:
        assert not self._under_way[cluster.value], "a call is under way"
        self.open.remove(cluster.value)

    def rados_pool_lookup(self, cluster: Any, name: bytes) -> int:
        return self.ids.get(name.decode(), -errno.ENOENT)

    def rados_ioctx_create(self, cluster: Any, name: bytes, context: Any) -> int:
        if name.decode() not in self.ids:
            return -errno.ENOENT
        number = context._obj.value = next(self._numbers)
        self._contexts[number] = (cluster.value, self.ids[name.decode()], "")
        return 0

    def rados_ioctx_get_id(self, io: Any) -> int:
        return self._contexts[io.value][1]

    def rados_ioctx_set_namespace(self, io: Any, namespace: bytes) -> None:
        client, pool, _ = self._contexts[io.value]
        self._contexts[io.value] = (client, pool, namespace.decode())

    def rados_ioctx_destroy(self, io: Any) -> None:
        assert io.value in self._contexts

    # Reads.

    def _object(self, io: Any, name: bytes) -> StoredObject | int:
        with self._call(io):
            fault = self._found("read", name.decode(), io)
            if fault is not None and fault.result is not None:
                return fault.result
            _, pool, namespace = self._contexts[io.value]
            if pool not in self.ids.values():
                return -errno.ENOENT
            with self._lock:
                found = self.pools.get((pool, namespace), {}).get(name.decode())
            return -errno.ENOENT if found is None else found

    def rados_read(self, io: Any, name: bytes, buffer: Any, length: int, offset: int) -> int:
        found = self._object(io, name)
        if isinstance(found, int):
            return found
        part = found.data[offset : offset + length]
        ctypes.memmove(buffer, part, len(part))
        return len(part)

    def rados_getxattr(self, io: Any, name: bytes, key: bytes, buffer: Any, length: int) -> int:
        found = self._object(io, name)
        if isinstance(found, int):
            return found
        value = found.attributes.get(key.decode())
        if value is None:
            return -errno.ENODATA
        ctypes.memmove(buffer, value, len(value))
        return len(value)

    def rados_stat(self, io: Any, name: bytes, size: Any, changed: Any) -> int:
        found = self._object(io, name)
        if isinstance(found, int):
            return found
        size._obj.value, changed._obj.value = len(found.data), found.changed_at
        return 0

    def rados_nobjects_list_open(self, io: Any, listing: Any) -> int:
        number = listing._obj.value = next(self._numbers)
        _, pool, namespace = self._contexts[io.value]
        with self._lock:
            names = list(self.pools.get((pool, namespace), {}))
        self._listings[number] = self._listed(io, names)
        return 0

    def _listed(self, io: Any, names: list[str]) -> Iterator[str]:
        for name in names:
            fault = self._found("list", name, io)
            if fault is not None and fault.result is not None:
                raise OSError(-fault.result, "it is let fail")
            yield name

    def rados_nobjects_list_next(self, listing: Any, *places: Any) -> int:
        try:
            name = next(self._listings[listing.value])
        except StopIteration:
            return -errno.ENOENT
        except OSError as error:
            return -(error.errno or 0)
        places[0]._obj.value = name.encode()
        return 0

    def rados_nobjects_list_close(self, listing: Any) -> None:
        del self._listings[listing.value]

    # Writes.

    def rados_create_write_op(self) -> int:
        number = next(self._numbers)
        self._operations[number] = []
        return number

    def rados_release_write_op(self, operation: int) -> None:
        del self._operations[operation]

    def rados_write_op_assert_exists(self, operation: int) -> None:
        self._operations[operation].append(("exists",))

    def rados_write_op_create(self, operation: int, exclusive: int, category: None) -> None:
        assert exclusive == 1
        self._operations[operation].append(("new",))

    def rados_write_op_cmpxattr(
        self, operation: int, key: bytes, comparison: int, value: bytes, length: int
    ) -> None:
        assert comparison == 1
        self._operations[operation].append(("compare", key.decode(), value[:length]))

    def rados_write_op_setxattr(self, operation: int, key: bytes, value: bytes, size: int) -> None:
        self._operations[operation].append(("set", key.decode(), value[:size]))

    def rados_write_op_write_full(self, operation: int, data: bytes, length: int) -> None:
        self._operations[operation].append(("data", data[:length]))

    def rados_write_op_remove(self, operation: int) -> None:
        self._operations[operation].append(("remove",))

    def rados_write_op_operate(
        self, operation: int, io: Any, name: bytes, time: Any, flags: int
    ) -> int:
        assert flags == 64, "a full pool would be waited for"
        steps, at = list(self._operations[operation]), None if time is None else time._obj.value
        with self._lock:
            self._writing += 1
            self.most_at_once = max(self.most_at_once, self._writing)
        try:
            return self._operated(steps, io, name.decode(), at)
        finally:
            with self._lock:
                self._writing -= 1

    def _operated(self, steps: Steps, io: Any, name: str, at: int | None) -> int:
        _, pool, namespace = self._contexts[io.value]
        with self._call(io):
            fault = self._found("write", name, io)
            if fault is not None and fault.is_late:
                self._late.append(((pool, namespace), name, steps, at))
            if fault is not None and fault.result is not None:
                return fault.result
            if pool not in self.ids.values():
                return -errno.ENOENT
            return self._apply((pool, namespace), name, steps, at)

    def _apply(self, place: tuple[int, str], name: str, steps: Steps, at: int | None) -> int:
        with self._lock:
            objects = self.pools.setdefault(place, {})
            made = objects.get(name)
            made = StoredObject() if made is None else msgspec.structs.replace(made)
            made.attributes = dict(made.attributes)
            made.changed_at = self.now if at is None else at
            for kind, *given in steps:
                result = self._step(kind, given, made, name in objects)
                if result:
                    return result
            self.writes.append(name)
            if steps[-1] == ("remove",):
                del objects[name]
            else:
                objects[name] = made
            return 0

    def _step(self, kind: str, given: list[Any], made: StoredObject, is_there: bool) -> int:
        if kind == "new" and is_there:
            return -errno.EEXIST
        if kind in ("exists", "remove") and not is_there:
            return -errno.ENOENT
        if kind == "compare" and made.attributes.get(given[0], b"") != given[1]:
            return -errno.ECANCELED
        if kind == "data":
            made.data = given[0]
        if kind == "set":
            made.attributes[given[0]] = given[1]
        return 0

    def rados_aio_create_completion(self, *given: Any) -> int:
        number = given[-1]._obj.value = next(self._numbers)
        assert given[:-1] == (None, None, None), "nothing may be called from a foreign thread"
        self.completions[number] = 0
        return 0

    def rados_aio_write_op_operate(
        self, operation: int, io: Any, completion: Any, name: bytes, time: Any, flags: int
    ) -> int:
        result = self.rados_write_op_operate(operation, io, name, time, flags)
        self.completions[completion.value] = result
        return 0

    def rados_aio_wait_for_complete(self, completion: Any) -> int:
        assert completion.value in self.completions
        return 0

    def rados_aio_get_return_value(self, completion: Any) -> int:
        return self.completions[completion.value]

    def rados_aio_release(self, completion: Any) -> None:
        del self.completions[completion.value]
