"""The C library of Ceph's object store: the functions that are used, with their types.

Lives here: loading it, and what a number that it returns means. Must not live here: when which
function is called (connection.py). Source: librados.h of Ceph 16.2; all functions are there since
Ceph 0.80.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint8, c_uint64, c_void_p
from typing import Any, Final

from strongroom.engines.bodies.base import BodiesUnfit
from strongroom.platform.libraries import shared_library

NAME: Final = "librados.so.2"
CREATE_EXCLUSIVE: Final = 1
EQUAL: Final = 1
FULL_TRY: Final = 64
"""Of an operation: it fails if the pool is full, where it would wait else. Removals succeed."""
BLOCKLISTED: Final = errno.ESHUTDOWN
CHANGED: Final = errno.ECANCELED
"""A comparison that was part of an operation has failed."""

_Time = c_int64 if ctypes.sizeof(c_void_p) == 8 else ctypes.c_long
_Functions = dict[str, tuple[Any, tuple[Any, ...]]]
_CLUSTER: Final[_Functions] = {
    "rados_create2": (c_int, (POINTER(c_void_p), c_char_p, c_char_p, c_uint64)),
    "rados_conf_read_file": (c_int, (c_void_p, c_char_p)),
    "rados_conf_set": (c_int, (c_void_p, c_char_p, c_char_p)),
    "rados_connect": (c_int, (c_void_p,)),
    "rados_shutdown": (None, (c_void_p,)),
    "rados_pool_lookup": (c_int64, (c_void_p, c_char_p)),
    "rados_ioctx_create": (c_int, (c_void_p, c_char_p, POINTER(c_void_p))),
    "rados_ioctx_get_id": (c_int64, (c_void_p,)),
    "rados_ioctx_set_namespace": (None, (c_void_p, c_char_p)),
    "rados_ioctx_destroy": (None, (c_void_p,)),
}
_READS: Final[_Functions] = {
    "rados_read": (c_int, (c_void_p, c_char_p, c_void_p, c_size_t, c_uint64)),
    "rados_getxattr": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p, c_size_t)),
    "rados_stat": (c_int, (c_void_p, c_char_p, POINTER(c_uint64), POINTER(_Time))),
    "rados_nobjects_list_open": (c_int, (c_void_p, POINTER(c_void_p))),
    "rados_nobjects_list_next": (
        c_int,
        (c_void_p, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_char_p)),
    ),
    "rados_nobjects_list_close": (None, (c_void_p,)),
}
_WRITES: Final[_Functions] = {
    "rados_create_write_op": (c_void_p, ()),
    "rados_release_write_op": (None, (c_void_p,)),
    "rados_write_op_assert_exists": (None, (c_void_p,)),
    "rados_write_op_create": (None, (c_void_p, c_int, c_char_p)),
    "rados_write_op_cmpxattr": (None, (c_void_p, c_char_p, c_uint8, c_char_p, c_size_t)),
    "rados_write_op_setxattr": (None, (c_void_p, c_char_p, c_char_p, c_size_t)),
    "rados_write_op_write_full": (None, (c_void_p, c_void_p, c_size_t)),
    "rados_write_op_remove": (None, (c_void_p,)),
    "rados_write_op_operate": (c_int, (c_void_p, c_void_p, c_char_p, POINTER(_Time), c_int)),
    "rados_aio_create_completion": (c_int, (c_void_p, c_void_p, c_void_p, POINTER(c_void_p))),
    "rados_aio_write_op_operate": (
        c_int,
        (c_void_p, c_void_p, c_void_p, c_char_p, POINTER(_Time), c_int),
    ),
    "rados_aio_wait_for_complete": (c_int, (c_void_p,)),
    "rados_aio_get_return_value": (c_int, (c_void_p,)),
    "rados_aio_release": (None, (c_void_p,)),
}
TIME: Final = _Time


@functools.cache
def librados() -> Any:
    """Return the library; its functions are attributes. Raises: BodiesUnfit."""
    try:
        library = shared_library(NAME)
        for name, (result, arguments) in {**_CLUSTER, **_READS, **_WRITES}.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise BodiesUnfit(
            f"the library of Ceph cannot be used ({error}). Install librados2: that is the name of "
            "Debian's package"
        ) from None
    return library


def checked(result: int) -> int:
    """Return what a function returned. Raises: OSError, if that is an error."""
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result
