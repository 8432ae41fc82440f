"""Ids are GUIDs of version 4, and no two requests get the same."""

from __future__ import annotations

import uuid

from strongroom.clock import ManualClock, RequestIds, SystemClock, guid


def test_a_guid_is_random_and_of_version_4() -> None:
    clock = SystemClock()
    made = {guid(clock) for _ in range(1000)}
    assert len(made) == 1000
    for text in made:
        read = uuid.UUID(text)
        assert (str(read), read.version, read.variant) == (text, 4, uuid.RFC_4122)


def test_every_bit_of_a_guid_that_may_be_random_is() -> None:
    clock = SystemClock()
    ever, always = 0, (1 << 128) - 1
    for _ in range(200):
        ever |= uuid.UUID(guid(clock)).int
        always &= uuid.UUID(guid(clock)).int
    varied = ever & ~always
    assert varied == (1 << 128) - 1 - (0xF << 76) - (0b11 << 62)


def test_the_same_randomness_makes_the_same_guid() -> None:
    expected = str(uuid.UUID(bytes=ManualClock(seed=4).random_bytes(16), version=4))
    assert guid(ManualClock(seed=4)) == expected


class _Ones:
    """A clock whose random bits are all set, so that the next number wraps around."""

    def wall_ticks(self) -> int:
        return 0

    def boot_ticks(self) -> int:
        return 0

    def random_bytes(self, count: int) -> bytes:
        return b"\xff" * count


def test_requests_get_guids_that_differ_also_where_the_count_begins_anew() -> None:
    next_id = RequestIds(_Ones())
    made = [next_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert all(str(uuid.UUID(text)) == text and uuid.UUID(text).version == 4 for text in made)
