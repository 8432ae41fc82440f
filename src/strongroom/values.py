"""Values that several layers share: times in ticks, ETags, leases, metadata, ranges, file slices.

Lives here: plain data with its text forms, frozen except for the struct of an entity. Must not live
here: rules (semantics/), parsing of whole headers (wire/), IO. Source: the Azure Storage REST
reference; ETags and times in "Specifying conditional headers for Blob service operations".
"""

from __future__ import annotations

import enum
import re
from binascii import b2a_base64
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import BinaryIO, Final, Literal

import msgspec

from strongroom import limits
from strongroom.enums import FastHashEnum

# A tick is 100 ns since 0001-01-01T00:00:00Z, the unit in which Azure writes its own times and
# ETags.
TICKS_PER_S: Final = 10_000_000
UNIX_EPOCH_TICKS: Final = 621_355_968_000_000_000
_YEAR_ONE: Final = datetime(1, 1, 1, tzinfo=UTC)
_DAY_S: Final = 86_400
LATEST_TICKS: Final = 3_155_378_975_999_999_999
"""The end of 9999-12-31, the last day that the protocol's time formats can express."""
# The smallest and the largest Edm.Int32; parsers of documents use them too.
INT32: Final = (-(2**31), 2**31 - 1)
DAY_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTH_NAMES: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)

# A format of a number takes three times as long as a lookup.
_TWO_DIGITS: Final = tuple(f"{number:02d}" for number in range(60))

Scalar = str | bool | int | float
"""A JSON value that is neither null, an array nor an object."""
Metadata = tuple[tuple[str, str], ...]


def ticks_of(moment: datetime) -> int:
    """Return the ticks of an aware datetime."""
    delta = moment - _YEAR_ONE
    return (delta.days * _DAY_S + delta.seconds) * TICKS_PER_S + delta.microseconds * 10


def datetime_of(ticks: int) -> datetime:
    """Return the UTC datetime of `ticks`, cut to microseconds."""
    return _YEAR_ONE + timedelta(microseconds=ticks // 10)


def rfc1123(ticks: int) -> str:
    """Return a time as `Fri, 26 Jun 2015 23:39:12 GMT`, the form of Last-Modified and Date.

    It has whole seconds. Repeated seconds and days are cached, so many times close together are
    cheap.
    """
    return _rfc1123_of_second(ticks // TICKS_PER_S)


@lru_cache(maxsize=1024)
def _rfc1123_of_second(moment: int) -> str:
    day, second = divmod(moment, _DAY_S)
    return f"{_rfc1123_of_day(day)} {_time_of_day(second)} GMT"


def _time_of_day(second: int) -> str:
    hour, minute = second // 3600, second // 60 % 60
    return f"{_TWO_DIGITS[hour]}:{_TWO_DIGITS[minute]}:{_TWO_DIGITS[second % 60]}"


@lru_cache(maxsize=1024)
def _rfc1123_of_day(day: int) -> str:
    moment = datetime_of(day * _DAY_S * TICKS_PER_S)
    name, month = DAY_NAMES[moment.weekday()], MONTH_NAMES[moment.month - 1]
    return f"{name}, {moment.day:02d} {month} {moment.year:04d}"


def iso7(ticks: int) -> str:
    """Return a time as `2011-03-09T01:42:34.9360000Z`: seven digits, as in snapshots and error
    times."""
    moment, fraction = divmod(ticks, TICKS_PER_S)
    return f"{_iso_of_second(moment)}.{fraction:07d}Z"


@lru_cache(maxsize=1024)
def _iso_of_second(moment: int) -> str:
    day, second = divmod(moment, _DAY_S)
    return f"{_YEAR_ONE.date() + timedelta(days=day)}T{_time_of_day(second)}"


class PlusSign(FastHashEnum):
    """The meaning of a `+` in a request's query, as far as its signature shows it."""

    ITSELF = "itself"
    """The query was signed with a plus sign in its place."""
    SPACE = "space"
    """The query was signed with a space in its place."""
    UNSIGNED = "unsigned"
    """The signature does not cover the query, or there is none."""


def is_cacheable(query: str) -> bool:
    """Whether the parsed form of a query may be cached.

    Anybody may send any query, so only short queries are cached.
    """
    is_short = len(query) <= limits.REMEMBERED_QUERY_CHARS_MAX
    return is_short and query.count("&") < limits.REMEMBERED_QUERY_PARAMETERS_MAX


Etag = int | str
"""A stamp, or the text with quotes of an ETag that another server gave (ForeignEtag)."""


def etag_text(etag: Etag) -> str:
    """Return an ETag as Azure writes it, with quotes: `"0x8D8499394C82CF9"`."""
    return etag if isinstance(etag, str) else f'"0x{etag:X}"'


class ForeignEtag(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The ETag that another server gave to an imported state.

    It is only shown, and compared with the ETags of conditions. `stamp` is the `etag` of the
    record that was imported. So it ends by itself with the first change, which gives the record
    another stamp. `text` has its quotes.
    """

    stamp: int
    text: str

    @staticmethod
    def shown(foreign: ForeignEtag | None, stamp: int) -> Etag:
        """Return the ETag of a record that has this stamp."""
        return stamp if foreign is None or foreign.stamp != stamp else foreign.text


def md5_text(digest: bytes) -> str:
    """Return a digest in the form of Content-MD5: base64."""
    return b2a_base64(digest, newline=False).decode("ascii")


def crc64_text(checksum: int) -> str:
    """Return a checksum in the form of x-ms-content-crc64.

    It is the base64 of eight bytes, least significant first.
    """
    return b2a_base64(checksum.to_bytes(8, "little"), newline=False).decode("ascii")


class Entity(msgspec.Struct, eq=False, gc=False):
    """A table's entity: its keys, its Timestamp in ticks, and its other properties.

    `fragment` has those properties as the inside of a JSON object (semantics/table/edm.py).
    """

    partition_key: str
    row_key: str
    timestamp: int
    fragment: bytes


class PublicAccess(enum.Enum):
    """Anonymous access to a container (Set Container ACL)."""

    NONE = ""
    BLOB = "blob"
    CONTAINER = "container"


class BlobKind(enum.IntEnum):
    """The three kinds of blob."""

    BLOCK = 1
    PAGE = 2
    APPEND = 3

    @property
    def type_text(self) -> str:
        """The value of x-ms-blob-type: `BlockBlob`, `PageBlob` or `AppendBlob`."""
        return _BLOB_TYPES[self]


_BLOB_TYPES: Final = {
    BlobKind.BLOCK: "BlockBlob",
    BlobKind.PAGE: "PageBlob",
    BlobKind.APPEND: "AppendBlob",
}

BlockListKind = Literal["Committed", "Uncommitted", "Latest"]
"""Where an entry of a block list looks: the name of its XML element."""


class Lease(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The stored part of a lease; its state at a given time is computed (semantics/core/lease.py).

    `id` is the lower-case GUID; `duration_s` is -1 (infinite) or 15..60. `expires` is the tick at
    which a fixed lease ends (0 = never). `breaks` is the tick at which a breaking lease is broken
    (0 = no break was requested).
    """

    id: str
    duration_s: int
    expires: int = 0
    breaks: int = 0


class ContentProperties(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The six HTTP properties that are stored with a blob; `None` = not set.

    `md5` is the raw 16 bytes. A client may set any text as the MD5, and it is stored unchecked. A
    text that is not the base64 of 16 bytes is in `other_md5`, and then `md5` is None.
    """

    content_type: str | None = None
    encoding: str | None = None
    language: str | None = None
    md5: bytes | None = None
    cache_control: str | None = None
    disposition: str | None = None
    other_md5: str | None = None

    @property
    def content_md5(self) -> str | None:
        """The text of Content-MD5."""
        return self.other_md5 if self.md5 is None else md5_text(self.md5)

    def completed(self, other: ContentProperties) -> ContentProperties:
        """Return these properties, with unset ones taken from `other`, except the MD5."""
        return msgspec.structs.replace(
            self,
            content_type=self.content_type or other.content_type,
            encoding=self.encoding or other.encoding,
            language=self.language or other.language,
            cache_control=self.cache_control or other.cache_control,
            disposition=self.disposition or other.disposition,
        )

    def with_md5(self, digest: bytes | None) -> ContentProperties:
        """Return these properties with another MD5, or with none."""
        return msgspec.structs.replace(self, md5=digest, other_md5=None)


class AccessPolicy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A stored access policy: times are the ISO 8601 text as given, `None` = left to the SAS."""

    id: str
    start: str | None = None
    expiry: str | None = None
    permission: str | None = None


class ByteRange(msgspec.Struct, frozen=True):
    """`bytes=first-last`, both inclusive; `last` None = to the end."""

    first: int
    last: int | None

    def within(self, size_bytes: int) -> tuple[int, int] | None:
        """Return (offset, length) clipped to `size_bytes`; None if the range starts beyond the
        end."""
        if self.first >= size_bytes:
            return None
        last = size_bytes - 1 if self.last is None else min(self.last, size_bytes - 1)
        return self.first, last - self.first + 1


class FileSlice(msgspec.Struct, frozen=True):
    """Bytes in an open file, which the kernel sends without passing them through Python."""

    file: BinaryIO
    offset: int
    length: int


Piece = bytes | FileSlice
"""A part of a body: bytes in memory, or bytes that lie in a file."""


class Health(enum.Enum):
    """Whether an engine can serve now."""

    SERVING = "serving"
    FULL = "full"
    """No space is left: reads and deletes are served, writes of new data are refused."""
    STALLED = "stalled"
    """The engine did not answer in time."""
    STOPPED = "stopped"
    """The engine is closed or broken, and will not serve again."""


class StoreFacts(msgspec.Struct, frozen=True):
    """What an operator watches of a store on a disk.

    Attributes:
        free_bytes: the free space of its disk.
        is_full: whether new data may be refused, or the reserve is in use.
        ballast_bytes, ballast_whole_bytes: the reserve now, and when it is whole.
        records_bytes, log_bytes, segments_bytes: the lengths of its files.
        live_bytes: the part of the segments that is needed.
        commits: how many commits took up to so many seconds, by that bound, in its order; each
            count includes those of the bounds below. The last bound is infinite.
        commits_s: how long all commits took together.
        segment_syncs: the same of the syncs of segments, in the form of `commits`.
        segment_syncs_s: how long they took together.
        damaged_reads: how often this process has read damaged data.
        backup_ended_s: when the last backup was complete, in seconds since 1970; None = there was
            none.
        decisions: how many decisions the commits made durable: several share a commit.
    """

    free_bytes: int
    is_full: bool
    ballast_bytes: int
    ballast_whole_bytes: int
    records_bytes: int
    log_bytes: int
    segments_bytes: int
    live_bytes: int
    commits: tuple[tuple[float, int], ...]
    commits_s: float
    segment_syncs: tuple[tuple[float, int], ...]
    segment_syncs_s: float
    damaged_reads: int
    backup_ended_s: float | None
    decisions: int = 0


class GatewayFacts(msgspec.Struct, frozen=True):
    """What an operator watches of a gateway to a store in a database.

    Attributes:
        gateways: how many are live.
        heartbeat_age_s: since its last heartbeat was sent that the store accepted.
        clock_ahead_s: how far this machine's clock is ahead of the database's.
        used_bytes, quota_bytes: of keys, values and bodies; no quota = None.
        sessions: how often it connected to the database.
        commits, commits_s, decisions: as in StoreFacts.
        clock_doubt_s: by how much its time may differ from the database's.
        awaits_standby: whether the database waits for a standby with each commit.
        sessions_refused: how often the database had no connection left for it.
        bodies_away: whether the place of long bodies cannot be used; None = there is none.
    """

    number: int
    gateways: int
    heartbeat_age_s: float
    clock_ahead_s: float
    used_bytes: int
    quota_bytes: int | None
    sessions: int
    commits: tuple[tuple[float, int], ...]
    commits_s: float
    decisions: int
    clock_doubt_s: float
    awaits_standby: bool
    sessions_refused: int
    bodies_away: bool | None = None


class ScrubFacts(msgspec.Struct, frozen=True):
    """What an operator watches of the scrub of a store.

    Attributes:
        interval_s: how long a pass may take, and how often one begins.
        progress: how much of the present pass is read, from 0 to 1; 1 = the last one is complete.
        read_bytes: how much this process has read.
        damaged: how many places are damaged.
        began_s: when the last pass began, or the first one was due, in seconds since 1970.
        ended_s: when a pass was complete last, in seconds since 1970; None = none was.
    """

    interval_s: float
    progress: float
    read_bytes: int
    damaged: int
    began_s: float
    ended_s: float | None


class JobFacts(msgspec.Struct, frozen=True):
    """What an operator watches of the jobs in the background.

    Attributes:
        running: how many run now.
        failing: how many have failed and will be tried again.
        done: how many this process has finished.
    """

    running: int
    failing: int
    done: int


class Purpose(enum.IntEnum):
    """The purpose of an update.

    It decides how much of the reserved space the update may use on a full disk.
    """

    GROWTH = 0
    """The update stores more data, and may use none of the reserve."""
    UPKEEP = 1
    """It keeps alive what is stored, such as a lease: it may use the first half."""
    FREEING = 2
    """It removes data, and may store the job that removes the rest: it may use all of the
    reserve."""


ACCOUNT_SCOPE: Final = "$account-encryption-key"
"""The encryption scope of content that is encrypted with the account's own key."""
_SCOPE: Final = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){2,62}")
_SCOPE_CHARS_MAX: Final = 63


def is_encryption_scope(text: str) -> bool:
    """Whether a text is a valid name of an encryption scope: 3 to 63 letters, digits, single
    hyphens."""
    return text == ACCOUNT_SCOPE or (
        len(text) <= _SCOPE_CHARS_MAX and _SCOPE.fullmatch(text) is not None
    )
