"""The keyspace map: the key of every kind of record, as one table of functions.

Lives here: which keyspace, partition and key each kind of record has, and why they sort as they do.
Must not live here: what the records contain (records.py), or when they are written (services/).

| record                  | keyspace         | partition       | class  | key                      |
| ----------------------- | ---------------- | --------------- | ------ | ------------------------ |
| container               | `c` + account    | container name  | face   | `c`                      |
| deleted container       | `c` + account    | container name  | face   | `d` + generation         |
| queue                   | `q` + account    | queue name      | face   | `q`                      |
| table                   | `t` + account    | name, lower case| face   | `t`                      |
| share, or a deleted one | `f` + account    | share name      | face   | `f`, `d` + generation    |
| name in a share         | `n` + generation | `n`             | face   | parent's id, folded name |
| node of a name          | `n` + generation | `n`             | hidden | `o` + id                 |
| permission of a share   | `n` + generation | `p`             | face   | permission key           |
| file or directory       | `a` + generation | id              | face   | `a`                      |
| entity                  | `e` + generation | PartitionKey    | face   | RowKey                   |
| rest of a large entity  | `e` + generation | PartitionKey    | face   | RowKey + 0 + number      |
| service properties      | `s`              | account/service | face   | `p`                      |
| blob's snapshot         | `b` + generation | blob name       | face   | 1 + ticks                |
| blob's head             | `b` + generation | blob name       | face   | 2                        |
| version of a blob       | `b` + generation | blob name       | hidden | `v` + id                 |
| upload in progress      | `b` + generation | blob name       | hidden | `u`                      |
| same, at gateway N > 0  | `b` + generation | blob name       | hidden | `u` + N                  |
| staged block            | `b` + generation | blob name       | hidden | `k` + upload, id, number |
| inline body             | `b` + generation | blob name       | hidden | `i` + ticks (0 = head's) |
| inline body of a version| `b` + generation | blob name       | hidden | `i` + id + `v`           |
| block list              | `b` + generation | blob name       | hidden | `l` + stamp              |
| appended block          | `b` + generation | blob name       | hidden | `a` + body, end          |
| retired body            | `b` + generation | blob name       | hidden | `r` + stamp              |
| pending clears of a map | the owner's      | the owner's     | hidden | `w` + map                |
| leaf of a map           | the owner's      | the owner's     | hidden | `e` + map, leaf          |
| leaf with holes alone   | the owner's      | the owner's     | hidden | `y` + map, leaf          |
| past leaf of a map      | the owner's      | the owner's     | hidden | `h` + map, leaf, until   |
| inline data of a leaf   | the owner's      | the owner's     | hidden | `d` + map, leaf, born    |
| queue's ledger          | `m` + generation | epoch           | hidden | `n`                      |
| ledger of gateway N > 0 | `m` + generation | epoch           | hidden | `n` + N                  |
| long text of a message  | `m` + generation | epoch           | hidden | `t` + number + chunk     |
| message                 | `m` + generation | epoch           | hidden | `v` + visible, stamp, i  |
| message's expiry        | `m` + generation | epoch           | hidden | `x` + expires + number   |
| tag's entry             | `g` + generation | tag, blob, token| face   | `g`                      |
| tag's entry of a version| `v` + generation | the same + id   | face   | `g`                      |
| job                     | `j`              | due + stamp + k | face   | `j` (k = its kind)       |
| line of waiting gateways| `l`              | digest          | face   | `l`                      |
| account, or its chunk   | `i`              | `a`             | face   | name (+ 0 + number)      |
| role assignment         | `i`              | `r`             | face   | its words                |
| when these changed      | `i`              | `a`, `r`        | face   | 0                        |

A generation is the stamp of the container's creation. A container that is deleted and created again
has another one, so its old blobs are unreachable at once and can be swept later. Snapshots sort
before their base blob, oldest first, the order in which List Blobs reports them.

Previous versions are hidden, so that a plain listing does not read them. A blob with versions has a
head, or a vacant head, so that scans find it. The keys of tags are in tag_keys.py, more keys of
shares in share_keys.py, of several gateways in gateway_keys.py, and of lines in line_keys.py.

A message's number is the stamp of its Put. Its key has the time from which it is visible and the
commit that wrote it (i: the index in that commit). A retrieval or update moves it. So a key never
holds two states, and a reference to an old key is stale. All messages since the queue was last
cleared, an epoch, are in one partition, so that the next epoch is empty at once.

Accounts and roles are in a store that several gateways may serve. A data directory has files of
them instead. Each change writes the record "when these changed", whose version tells a gateway.

A map (store/core/extents) locates the bytes of a blob or file, in its owner's partition. Its number
is the stamp of its creation. A leaf is one of its spans of 64 KiB; `until`, `born` are stamps.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from strongroom.engines.base import Key, Partition, Ref, key_of, partition_of, ref_of

CONTAINER_KEY: Final = Key(False, b"c")
QUEUE_KEY: Final = Key(False, b"q")
TABLE_KEY: Final = Key(False, b"t")
FILE_KEY: Final = Key(False, b"a")
SHARE_KEY: Final = Key(False, b"f")
PROPERTIES_KEY: Final = Key(False, b"p")
HEAD_KEY: Final = Key(False, b"\x02")
UPLOAD_KEY: Final = Key(True, b"u")
LEDGER_KEY: Final = Key(True, b"n")
JOB_KEY: Final = Key(False, b"j")
SERVICES: Final = b"s"
JOBS: Final = b"j"
IDENTITIES: Final = b"i"
ACCOUNTS: Final = Partition(IDENTITIES, b"a")
ROLES: Final = Partition(IDENTITIES, b"r")
IDENTITIES_CHANGED: Final = Key(False, b"\0")
_SNAPSHOT: Final = b"\x01"
_DELETED_PLACE: Final = b"d"
# The first byte of each kind of hidden key.
STAGED: Final = b"k"
INLINE: Final = b"i"
VERSION: Final = b"v"
BLOCK_LIST: Final = b"l"
APPENDED: Final = b"a"
RETIRED: Final = b"r"
MAP_CLEARS: Final = b"w"
MAP_LEAF: Final = b"e"
MAP_HOLLOW: Final = b"y"
MAP_PAST: Final = b"h"
MAP_DATA: Final = b"d"
MAP_KINDS: Final = (MAP_DATA, MAP_LEAF, MAP_HOLLOW, MAP_PAST, MAP_CLEARS)
FILE_NODE: Final = b"o"
TEXT: Final = b"t"
MESSAGE: Final = b"v"
EXPIRY: Final = b"x"
# Nearly every request names one of a few containers, queues, tables or shares, with a short name.
_NAMES_CACHED_MAX: Final = 1024
# For generations, epochs, and the times of snapshots (nearly always 0, the head).
_NUMBERS_CACHED_MAX: Final = 64


class Past(NamedTuple):
    """A state of a blob other than its head: a snapshot with its time, or a previous version with
    its id. Both are ticks."""

    ticks: int
    is_version: bool = False


def number(value: int) -> bytes:
    """Eight bytes that sort as the numbers do."""
    return value.to_bytes(8, "big")


def containers(account: str) -> bytes:
    return b"c" + account.encode()


@lru_cache(_NAMES_CACHED_MAX)
def container(account: str, name: str) -> Ref:
    return Ref(Partition(containers(account), name.encode()), CONTAINER_KEY)


def deleted_place(place: Ref, generation: int) -> Ref:
    """The record of a deleted, retained container or share, beside the current one of its name."""
    return Ref(place.partition, Key(False, _DELETED_PLACE + number(generation)))


def is_deleted_place(key: bytes) -> bool:
    """Of a container or share."""
    return key[:1] == _DELETED_PLACE and len(key) == 9


def queues(account: str) -> bytes:
    return b"q" + account.encode()


@lru_cache(_NAMES_CACHED_MAX)
def queue(account: str, name: str) -> Ref:
    return Ref(Partition(queues(account), name.encode()), QUEUE_KEY)


def tables(account: str) -> bytes:
    return b"t" + account.encode()


@lru_cache(_NAMES_CACHED_MAX)
def table(account: str, name: str) -> Ref:
    """The case of its name does not matter."""
    return Ref(Partition(tables(account), name.lower().encode()), TABLE_KEY)


def shares(account: str) -> bytes:
    return b"f" + account.encode()


@lru_cache(_NAMES_CACHED_MAX)
def share(account: str, name: str) -> Ref:
    return Ref(Partition(shares(account), name.encode()), SHARE_KEY)


@lru_cache(_NUMBERS_CACHED_MAX)
def file_names(generation: int) -> Partition:
    return Partition(b"n" + number(generation), b"n")


def file_name(generation: int, parent: int, folded: str) -> Ref:
    """The names in one directory sort together, by fold."""
    return ref_of((file_names(generation), file_name_key(parent, folded)))


def file_name_key(parent: int, folded: str) -> Key:
    """The key of a name, or of a prefix of names."""
    return key_of((False, number(parent) + folded.encode()))


def folded_name(key: bytes) -> bytes:
    return key[8:]


def file_node(generation: int, file_id: int) -> Ref:
    """The record that maps an id to its name."""
    return ref_of((file_names(generation), key_of((True, FILE_NODE + number(file_id)))))


@lru_cache(_NUMBERS_CACHED_MAX)
def permissions(generation: int) -> Partition:
    return Partition(b"n" + number(generation), b"p")


def permission(generation: int, key: str) -> Ref:
    return Ref(permissions(generation), Key(False, key.encode()))


@lru_cache(_NUMBERS_CACHED_MAX)
def files(generation: int) -> bytes:
    return b"a" + number(generation)


def file(generation: int, file_id: int) -> Partition:
    return partition_of((files(generation), number(file_id)))


def file_attributes(generation: int, file_id: int) -> Ref:
    return ref_of((file(generation, file_id), FILE_KEY))


@lru_cache(_NUMBERS_CACHED_MAX)
def entities(generation: int) -> bytes:
    return b"e" + number(generation)


def entity(generation: int, partition_key: str, row_key: str) -> Ref:
    """An entity's record, or the head record of a large entity."""
    partition = partition_of((entities(generation), partition_key.encode()))
    return ref_of((partition, key_of((False, row_key.encode()))))


def entity_chunk(row_key: bytes, index: int) -> Key:
    """The key of a chunk of a large entity, from 0. No RowKey holds U+0000, so the chunks sort
    directly after their entity, and one scan finds them together."""
    return Key(False, row_key + b"\0" + bytes((index,)))


def is_entity_chunk(key: bytes) -> bool:
    return len(key) > 1 and key[-2] == 0


def any_entity_chunk(names: Iterable[bytes]) -> bool:
    """Return whether any of these keys is that of a chunk; fast for thousands of keys."""
    return b"\0" in b"".join(names)


def service_properties(account: str, service: str) -> Ref:
    return ref_of((partition_of((SERVICES, f"{account}/{service}".encode())), PROPERTIES_KEY))


@lru_cache(_NUMBERS_CACHED_MAX)
def blobs(generation: int) -> bytes:
    return b"b" + number(generation)


def blob(generation: int, name: str) -> Partition:
    return partition_of((blobs(generation), name.encode()))


def snapshot(ticks: int) -> Key:
    return Key(False, _SNAPSHOT + number(ticks))


def snapshot_range() -> tuple[bytes, bytes]:
    """(first, until) of all snapshots in a blob's partition."""
    return _SNAPSHOT, HEAD_KEY.name


def snapshot_ticks(key: bytes) -> int | None:
    """Return the ticks in a snapshot's key; None for any other key."""
    return int.from_bytes(key[1:], "big") if key[:1] == _SNAPSHOT else None


def version(of: int) -> Key:
    return Key(True, VERSION + number(of))


def version_range(first: int = 0) -> tuple[bytes, bytes]:
    """(first, until) of a blob's previous versions, from the id `first` on."""
    return VERSION + number(first), after(VERSION)


def version_id(key: bytes) -> int | None:
    """Return the id in a previous version's key; None for any other key."""
    return int.from_bytes(key[1:], "big") if key[:1] == VERSION and len(key) == 9 else None


def past(of: Past) -> Key:
    return version(of.ticks) if of.is_version else snapshot(of.ticks)


def past_of(key: bytes) -> Past | None:
    """Return the snapshot or previous version with this key; None for any other key."""
    if (ticks := snapshot_ticks(key)) is not None:
        return Past(ticks)
    return None if (of := version_id(key)) is None else Past(of, True)


@lru_cache(_NUMBERS_CACHED_MAX)
def inline(ticks: int, is_version: bool = False) -> Key:
    """The key of the inline bytes of a snapshot, a previous version, or the head (0). It is fixed,
    so that one read of the partition returns a head together with its small body."""
    return Key(True, INLINE + number(ticks) + (VERSION if is_version else b""))


def block_list(stamp: int) -> Key:
    """The key of a committed block list that is short enough to be a record; written once."""
    return Key(True, BLOCK_LIST + number(stamp))


def appended(body: int, end: int) -> Key:
    """The key of a block of an append blob's body: the offset at which it ends. The first block
    after an offset holds the byte there."""
    return Key(True, APPENDED + number(body) + number(end))


def appended_range(body: int, after: int, end: int) -> tuple[bytes, bytes]:
    """(first, until) of the blocks of a body that end after `after`, at `end` at the latest."""
    return appended(body, after + 1).name, appended(body, end + 1).name


def appended_end(key: bytes) -> int:
    return int.from_bytes(key[9:], "big")


def retired(stamp: int) -> Key:
    """The key of bodies that one commit gave up, to be dropped when nothing else names them."""
    return Key(True, RETIRED + number(stamp))


def retired_range() -> tuple[bytes, bytes]:
    """(first, until) of a partition's retired bodies."""
    return RETIRED, after(RETIRED)


def staged(upload: int, block_id: bytes, content: int) -> Key:
    """The key of a staged block. It ends with the content's id: of several blocks staged under one
    block id, the last is the latest."""
    return Key(True, STAGED + number(upload) + bytes((len(block_id),)) + block_id + number(content))


def staged_as(upload: int, block_id: bytes) -> tuple[bytes, bytes]:
    """(first, until) of the blocks that one upload has staged under one id."""
    last = (1 << 64) - 1
    return staged(upload, block_id, 0).name, staged(upload, block_id, last).name


def staged_range(upload: int) -> tuple[bytes, bytes]:
    """Return the range (first, until) of the names of one upload's staged blocks."""
    return STAGED + number(upload), STAGED + number(upload + 1)


def staged_before(upload: int) -> tuple[bytes, bytes]:
    """(first, until) of the staged blocks of all uploads that began before the stamp `upload`."""
    return STAGED, STAGED + number(upload)


def retired_stamp(key: bytes) -> int:
    return int.from_bytes(key[1:], "big")


def staged_upload(key: bytes) -> int:
    return int.from_bytes(key[1:9], "big")


def staged_id(key: bytes) -> bytes:
    return key[10 : 10 + key[9]]


def map_clears(map_number: int) -> Key:
    """The key of the ranges of a map that were cleared and not yet removed leaf by leaf."""
    return Key(True, MAP_CLEARS + number(map_number))


def map_leaf(map_number: int, leaf: int, kind: bytes = MAP_LEAF) -> Key:
    """The key of a leaf's present state, or of its mark (MAP_HOLLOW); leaves sort by offset."""
    return key_of((True, kind + number(map_number) + leaf.to_bytes(4, "big")))


def map_past(map_number: int, leaf: int, until: int) -> Key:
    """The key of a leaf's state that ended with the stamp `until`; its states sort together."""
    return Key(True, MAP_PAST + number(map_number) + leaf.to_bytes(4, "big") + number(until))


def map_past_end(map_number: int, leaf: int) -> bytes:
    """The key after all past states of a leaf."""
    return map_past(map_number, leaf, (1 << 64) - 1).name + b"\0"


def map_data(map_number: int, leaf: int, born: int) -> Key:
    """The key of the few bytes that the commit `born` wrote into one leaf."""
    return Key(True, MAP_DATA + number(map_number) + leaf.to_bytes(4, "big") + number(born))


def map_ranges() -> list[tuple[bytes, bytes]]:
    """(first, until) of each kind of record of a partition's maps."""
    return [(kind, after(kind)) for kind in MAP_KINDS]


def map_number(key: bytes) -> int:
    return int.from_bytes(key[1:9], "big")


def map_leaf_number(key: bytes) -> int:
    return int.from_bytes(key[9:13], "big")


def map_stamp(key: bytes) -> int:
    """The stamp in the key of a past leaf (`until`) or of inline data (`born`)."""
    return int.from_bytes(key[13:21], "big")


@lru_cache(_NUMBERS_CACHED_MAX)
def message_partition(generation: int, epoch: int) -> Partition:
    """The partition of a queue's messages since it was created or last cleared."""
    return Partition(b"m" + number(generation), number(epoch))


def message(visible: int, stamp: int, index: int) -> Key:
    """The key of a message, visible from `visible` on, written by the commit `stamp`; the earliest
    sorts first. `index` is its place in that commit."""
    return Key(True, MESSAGE + number(visible) + number(stamp) + bytes((index,)))


def message_at(place: bytes) -> Key:
    """The key whose name is `message_place`."""
    return Key(True, MESSAGE + place)


def message_place(key: bytes) -> bytes:
    """The part of a message's key that identifies it: 17 bytes."""
    return key[1:]


def message_range() -> tuple[bytes, bytes]:
    """(first, until) of a partition's messages."""
    return MESSAGE, after(MESSAGE)


def text(message_number: int, chunk: int) -> Key:
    return Key(True, TEXT + number(message_number) + bytes((chunk,)))


def expiry(expires: int, message_number: int) -> Key:
    """The key of the record that maps a message's expiry time to the message."""
    return Key(True, EXPIRY + number(expires) + number(message_number))


def expiry_range() -> tuple[bytes, bytes]:
    """(first, until) of a partition's expiries, the earliest first."""
    return EXPIRY, after(EXPIRY)


def expires_at(key: bytes) -> int:
    return int.from_bytes(key[1:9], "big")


def expiry_number(key: bytes) -> int:
    return int.from_bytes(key[9:], "big")


def job(due: int, stamp: int, kind: int) -> Ref:
    """The record of background work, sorted by due time. One commit orders one job of a kind at
    most."""
    return Ref(Partition(JOBS, number(due) + number(stamp) + bytes((kind,))), JOB_KEY)


def job_ref(partition: bytes) -> Ref:
    """The record of a job that a scan of JOBS has found."""
    return Ref(Partition(JOBS, partition), JOB_KEY)


def job_times(partition: bytes) -> tuple[int, int]:
    """(due, stamp) of a job's partition name."""
    return int.from_bytes(partition[:8], "big"), int.from_bytes(partition[8:16], "big")


def identity(name: str, chunk: int) -> Key:
    """The key of an account or role assignment, or of a further chunk of a long one. No name holds
    U+0000, so the chunks sort directly after the first."""
    return Key(False, name.encode() + (b"\0" + bytes((chunk,)) if chunk else b""))


def identity_chunk(key: bytes) -> tuple[str, int]:
    """(name, chunk) of such a key."""
    name, _, chunk = key.partition(b"\0")
    return name.decode("utf-8", "backslashreplace"), int.from_bytes(chunk, "big")


def after(prefix: bytes) -> bytes:
    return prefix[:-1] + bytes((prefix[-1] + 1,))
