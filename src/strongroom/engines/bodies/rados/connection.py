"""A connection to one pool of Ceph, or to one namespace in it.

Lives here: `PoolConnection`, whose calls block, though never for ever: the library gives each up
after OPERATION_S. Must not live here: the layout of the objects (pool.py).

The library calls nothing of ours, so no call from a thread of its own can come when Python ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit
from strongroom.engines.bodies.rados.library import (
    CREATE_EXCLUSIVE,
    EQUAL,
    FULL_TRY,
    TIME,
    checked,
    librados,
)
from strongroom.engines.bodies.urls import PoolUrl

OPERATION_S: Final = 40
"""A host that is lost is noticed by the others after 20 s, in Ceph's defaults."""
_CONNECT_S: Final = 10
_OPTIONS: Final = {
    "rados_osd_op_timeout": OPERATION_S,
    "rados_mon_op_timeout": _CONNECT_S,
    "client_mount_timeout": _CONNECT_S,
}
_ATTRIBUTE_BYTES_MAX: Final = 256
_REMOVED_AT_ONCE: Final = 32
_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EINVAL)


class ObjectChange(NamedTuple):
    """What happens to one object, as a whole or not at all.

    Attributes:
        exists: True = it must be there; False = it must not; None = either.
        expects: a value that an attribute must have; if it has another one, the call raises an
            OSError with the number CHANGED.
        data: replaces its bytes.
        sets: an attribute and its value.
        removes: whether the object is removed.
    """

    exists: bool | None = None
    expects: tuple[str, bytes] | None = None
    data: bytes | bytearray | None = None
    sets: tuple[str, bytes] | None = None
    removes: bool = False


class PoolConnection:
    """A connection that is open. Calls may be made from any thread.

    Attributes:
        pool_id: of the pool, which another one of its name does not have.

    Raises: BodiesUnfit: the text says what to do; BodiesAway; OSError.
    """

    def __init__(self, where: PoolUrl) -> None:
        self._where = where
        self._library = librados()
        self._lock = threading.Lock()
        self._calls = 0
        self._is_closed = False
        self._cluster, self._pool = ctypes.c_void_p(), ctypes.c_void_p()
        _check_readable(where)
        library, cluster = self._library, self._cluster
        user = where.user.encode()
        checked(library.rados_create2(ctypes.byref(cluster), b"ceph", user, 0))
        try:
            self._connect()
            self._open_pool()
        except BaseException:
            library.rados_shutdown(cluster)
            raise

    def _connect(self) -> None:
        where, library = self._where, self._library
        read = library.rados_conf_read_file(self._cluster, where.configuration.encode())
        if read < 0:
            raise BodiesUnfit(
                f"{where}: {where.configuration} is no configuration of Ceph: {os.strerror(-read)}"
            )
        for name, value in _OPTIONS.items():
            library.rados_conf_set(self._cluster, name.encode(), b"%d" % value)
        connected = library.rados_connect(self._cluster)
        if connected == -errno.ETIMEDOUT:
            raise BodiesAway(
                f"{where}: no monitor of Ceph has let {where.user} in within {_CONNECT_S} s. Look "
                f"at the monitors, and at the keyring that {where.configuration} names"
            )
        if -connected in _REFUSED:
            raise BodiesUnfit(
                f"{where}: Ceph refuses {where.user} ({os.strerror(-connected)}). "
                f"{where.configuration} names the monitors and the keyring of this user, which the "
                "user of the gateway must be able to read"
            )
        checked(connected)

    def _open_pool(self) -> None:
        where, library = self._where, self._library
        name, pool = where.pool.encode(), ctypes.byref(self._pool)
        opened = library.rados_ioctx_create(self._cluster, name, pool)
        if opened == -errno.ENOENT:
            raise BodiesUnfit(
                f"{where}: there is no pool {where.pool}. Make it by `ceph osd pool create "
                f"{where.pool}`, or name another one"
            )
        checked(opened)
        self.pool_id = int(library.rados_ioctx_get_id(self._pool))
        if where.namespace:
            library.rados_ioctx_set_namespace(self._pool, where.namespace.encode())

    @contextmanager
    def _used(self) -> Iterator[Any]:
        """Yield the pool. It is not closed meanwhile."""
        with self._lock:
            if self._is_closed:
                raise OSError(errno.ENOTCONN, "the connection was closed")
            self._calls += 1
        try:
            yield self._pool
        finally:
            with self._lock:
                self._calls -= 1
            self._end_if_unused()

    def is_current(self) -> bool:
        """Whether the name of the pool still leads to it."""
        with self._used():
            name = self._where.pool.encode()
            return bool(self._library.rados_pool_lookup(self._cluster, name) == self.pool_id)

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Fewer bytes come if the object ends before. Raises: FileNotFoundError, OSError."""
        buffer = ctypes.create_string_buffer(length)
        with self._used() as pool:
            call = self._library.rados_read
            count = checked(call(pool, name.encode(), buffer, length, offset))
        return buffer.raw if count == length else buffer.raw[:count]

    def attribute(self, name: str, key: str) -> bytes:
        """Raises: FileNotFoundError: the object is missing; OSError, also if it has no such
        attribute."""
        buffer = ctypes.create_string_buffer(_ATTRIBUTE_BYTES_MAX)
        with self._used() as pool:
            call = self._library.rados_getxattr
            arguments = (name.encode(), key.encode(), buffer, _ATTRIBUTE_BYTES_MAX)
            count = checked(call(pool, *arguments))
        return buffer.raw[:count]

    def changed_at(self, name: str) -> int:
        """Return when an object was changed, by the clock of the client that did it. Raises:
        FileNotFoundError, OSError."""
        size, changed = ctypes.c_uint64(), TIME()
        with self._used() as pool:
            call = self._library.rados_stat
            checked(call(pool, name.encode(), ctypes.byref(size), ctypes.byref(changed)))
        return int(changed.value)

    def change(self, name: str, change: ObjectChange, at: int | None = None) -> None:
        """Change an object, durably.

        Arguments:
            at: the time of the change; None = now.

        Raises: OSError. After a TimeoutError, it may happen yet.
        """
        library, time = self._library, None if at is None else ctypes.byref(TIME(at))
        with self._used() as pool, _operation(library, change) as operation:
            call = library.rados_write_op_operate
            checked(call(operation, pool, name.encode(), time, FULL_TRY))

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects, several at a time. Those that do not exist are passed over."""
        for at in range(0, len(names), _REMOVED_AT_ONCE):
            some = names[at : at + _REMOVED_AT_ONCE]
            for result in self._removed(some):
                if result != -errno.ENOENT:
                    checked(result)

    def _removed(self, names: Sequence[str]) -> list[int]:
        """Return the results of removals that run at once. All that begin are waited for."""
        begun: list[ctypes.c_void_p] = []
        with self._used() as pool:
            try:
                for name in names:
                    begun.append(self._removal_begun(pool, name))
            finally:
                results = [self._ended(one) for one in begun]
        return results

    def _removal_begun(self, pool: Any, name: str) -> ctypes.c_void_p:
        library, completion = self._library, ctypes.c_void_p()
        checked(library.rados_aio_create_completion(None, None, None, ctypes.byref(completion)))
        try:
            with _operation(library, ObjectChange(removes=True)) as operation:
                call = library.rados_aio_write_op_operate
                checked(call(operation, pool, completion, name.encode(), None, FULL_TRY))
        except BaseException:
            library.rados_aio_release(completion)
            raise
        return completion

    def _ended(self, completion: ctypes.c_void_p) -> int:
        self._library.rados_aio_wait_for_complete(completion)
        result = int(self._library.rados_aio_get_return_value(completion))
        self._library.rados_aio_release(completion)
        return result

    def names(self) -> Iterator[str]:
        """Yield the names of all objects, in no order. The connection stays open until the end."""
        library, listing = self._library, ctypes.c_void_p()
        found, key, namespace = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_char_p()
        places = tuple(map(ctypes.byref, (found, key, namespace)))
        with self._used() as pool:
            checked(library.rados_nobjects_list_open(pool, ctypes.byref(listing)))
            try:
                while (result := library.rados_nobjects_list_next(listing, *places)) >= 0:
                    yield (found.value or b"").decode("utf-8", "replace")
                if result != -errno.ENOENT:  # that is the end
                    checked(result)
            finally:
                library.rados_nobjects_list_close(listing)

    def close(self) -> None:
        """It ends after the calls that are under way. Idempotent."""
        with self._lock:
            self._is_closed = True
        self._end_if_unused()

    def _end_if_unused(self) -> None:
        with self._lock:
            if self._calls or not self._is_closed or self._cluster.value is None:
                return
            cluster, self._cluster = self._cluster, ctypes.c_void_p()
        self._library.rados_ioctx_destroy(self._pool)
        self._library.rados_shutdown(cluster)


def _check_readable(where: PoolUrl) -> None:
    try:
        with open(where.configuration, "rb"):
            pass
    except OSError as error:
        raise BodiesUnfit(
            f"{where}: the configuration of Ceph, {where.configuration}, cannot be read: "
            f"{error.strerror}. It must be there on each machine of a gateway; conf=PATH in the "
            "URL names another one"
        ) from None


@contextmanager
def _operation(library: Any, change: ObjectChange) -> Iterator[Any]:
    operation = library.rados_create_write_op()
    try:
        if change.exists is False:
            library.rados_write_op_create(operation, CREATE_EXCLUSIVE, None)
        elif change.exists:
            library.rados_write_op_assert_exists(operation)
        if change.expects is not None:
            key, value = change.expects
            library.rados_write_op_cmpxattr(operation, key.encode(), EQUAL, value, len(value))
        if change.data is not None:
            library.rados_write_op_write_full(operation, _pointer(change.data), len(change.data))
        if change.sets is not None:
            key, value = change.sets
            library.rados_write_op_setxattr(operation, key.encode(), value, len(value))
        if change.removes:
            library.rados_write_op_remove(operation)
        yield operation
    finally:
        library.rados_release_write_op(operation)


def _pointer(data: bytes | bytearray) -> Any:
    """Return what the library can read bytes from; they are not copied before it does."""
    if isinstance(data, bytes):
        return data
    return (ctypes.c_char * len(data)).from_buffer(data)
