"""Conditions in SQL: no record that satisfies one is left out, whatever its bytes are."""

from __future__ import annotations

import asyncio
import math
import random
from typing import Final

import pytest

from strongroom.engines.conditions import (
    AllOf,
    AnyOf,
    BytesWithin,
    Condition,
    Contains,
    LongerThan,
    NumberWithin,
    holds,
)
from strongroom.engines.postgres.sql.condition_sql import expression_of
from strongroom.testing.contract.subject import face, put, scan_all
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject

_ODD: Final = (
    *(b"", b"n=", b"n=1e999", b"n=1e-999", b"n=-0", b"n=1e99", b"\x00\xffn=12.5x"),
    *(b"n='); DROP TABLE records; --", b"n=\\x31", b"n=1\x00", b"n=\xb2", b"n=00012"),
    *(b"n=1.", b"n=.5"),
)
_CONDITIONS: Final[tuple[Condition, ...]] = (
    Contains(b"7"),
    Contains(b"'"),
    Contains(b"\x00"),
    Contains(b"\\"),
    NumberWithin(b"n=", 20.0, 40.5),
    NumberWithin(b"n=", -math.inf, 3.0),
    NumberWithin(b"n=", 40.0, math.inf),
    NumberWithin(b"n=", 12.0, 12.0, skip_bytes=1),
    NumberWithin(b"n=", 0.0, 0.0),
    BytesWithin(b"n=1", b"", b"5"),
    BytesWithin(b"n=", b"", b"\xff" * 33),
    BytesWithin(b"", b"v", b"w", skip_bytes=0),
    LongerThan(20),
    AllOf((Contains(b"n="), NumberWithin(b"n=", 0.1, 5.0))),
    AnyOf((Contains(b"n=2"), AllOf((Contains(b"n=1"), LongerThan(20))))),
)
_EXACT: Final = (Contains, BytesWithin, LongerThan)


def _values(random_: random.Random) -> list[bytes]:
    numbers = (
        lambda: b"%d" % random_.randrange(-9, 100),
        lambda: b"%f" % random_.uniform(-5, 50),
        lambda: b"%e" % random_.uniform(0, 1),
        lambda: b"none",
    )
    heads = (b"", b"v", b"\x00", b"\\")
    return [
        random_.choice(heads)
        + b"n="
        + random_.choice(numbers)()
        + random_.randbytes(random_.randrange(40))
        for _ in range(300)
    ]


def test_no_record_that_satisfies_a_condition_is_left_out(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    values = [*_ODD, *_values(random.Random(1))]

    async def run() -> None:
        subject = PostgresSubject(postgres.url, administrator)
        await subject.start()
        try:
            store = subject.store
            await put(store, *((face(b"%04d" % at), one) for at, one in enumerate(values)))
            for where in _CONDITIONS:
                wanted = [one for one in values if holds(where, one)]
                found = [one.value for one in await scan_all(store, b"k", 50, where)]
                assert [one for one in found if holds(where, one)] == wanted, where
                if isinstance(where, _EXACT):
                    assert found == wanted, "SQL sends what it need not"
        finally:
            await subject.stop()

    asyncio.run(run())


def test_a_condition_of_many_parts_is_left_to_the_caller() -> None:
    assert expression_of(AnyOf((Contains(b"a"),) * 16)) is not None
    assert expression_of(AnyOf((Contains(b"a"),) * 17)) is None


@pytest.mark.parametrize("text", [b"'; DROP", b"\\", b"\x00", b'"'])
def test_bytes_become_no_sql(text: bytes) -> None:
    expression = expression_of(Contains(text))
    assert expression == rf"(position('\x{text.hex()}'::bytea IN value) > 0)"
