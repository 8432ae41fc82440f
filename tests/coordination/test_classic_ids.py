"""The article's generator of ids: the published defects by name, and its own proof."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from strongroom import coordination
from strongroom.coordination import (
    Client,
    CorruptRecord,
    OptimisticData,
    OptimisticSyncStore,
    OutcomeUnknown,
    StoredText,
    StoreUnavailable,
    UniqueIdGenerator,
)
from strongroom.coordination.effects import (
    Applied,
    Conflict,
)
from strongroom.coordination.recipes.ids.id_ranges import ID_MAX, IdsExhausted, IdsUnavailable
from strongroom.testing import InProcessServer
from tests.coordination.classic_world import Scripted, url_of


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        yield running


class Shared:
    """The two methods over one text, as a test wants them."""

    def __init__(self, text: str | None = None) -> None:
        self.text, self.version = text, 0 if text is None else 1
        self.writes_count = 0
        self.before_write: Callable[[], bool | None] = lambda: None
        self._lock = threading.Lock()

    def get_data(self) -> OptimisticData:
        with self._lock:
            return OptimisticData(self.text, None if self.text is None else str(self.version))

    def try_optimistic_write(self, text: str, read: OptimisticData) -> bool:
        verdict = self.before_write()
        if verdict is not None:
            return verdict
        with self._lock:
            if read.version != (None if self.text is None else str(self.version)):
                return False
            self.text, self.version = text, self.version + 1
            self.writes_count += 1
            return True


def no_pause(_: float) -> None:
    pass


def generator(store: OptimisticSyncStore, size: int = 10, retries: int = 2) -> UniqueIdGenerator:
    return UniqueIdGenerator(store, size, retries, sleep=no_pause)


def test_ids_rise_and_the_store_is_written_once_a_range() -> None:
    store = Shared()
    ids = UniqueIdGenerator(store)
    assert [ids.next_id() for _ in range(2500)] == list(range(1, 2501))
    assert (store.text, store.writes_count) == ("3001", 3)
    assert UniqueIdGenerator(store).next_id() == 3001


def never() -> bool | None:
    return False


def raises() -> bool | None:
    raise OSError("the network is gone")


@pytest.mark.parametrize(("trouble", "error"), [(never, IdsUnavailable), (raises, OSError)])
def test_defect_a_range_that_was_not_reserved_is_handed_out(
    trouble: Callable[[], bool | None], error: type[Exception]
) -> None:
    """The listing changes its range before the write: exhausted retries, a write that raised."""
    store = Shared()
    ids, other = generator(store), generator(store)
    assert ids.next_id() == 1
    for expected in range(2, 11):
        assert ids.next_id() == expected
    store.before_write = trouble
    for _ in range(4):
        with pytest.raises(error):
            ids.next_id()
    store.before_write = lambda: None
    assert other.next_id() == 11
    assert ids.next_id() == 21


class Published:
    """The shape of the listing: the local range is changed before the write is known to be done."""

    def __init__(self, store: Shared) -> None:
        self._store, self._last, self._highest = store, 0, 0

    def next_id(self) -> int:
        if self._last == self._highest:
            for _ in range(3):
                read = self._store.get_data()
                self._last = int(read.text or "1") - 1
                self._highest = self._last + 10
                if self._store.try_optimistic_write(str(self._highest + 1), read):
                    break
            else:
                raise IdsUnavailable("ids", 3, "lost races")
        self._last += 1
        return self._last


@pytest.mark.parametrize("trouble", [never, raises])
def test_the_published_listing_hands_out_what_is_not_reserved(
    trouble: Callable[[], bool | None],
) -> None:
    """The defect that the previous test excludes exists in the published listing."""
    store = Shared()
    published, other = Published(store), generator(store)
    store.before_write = trouble
    with pytest.raises((IdsUnavailable, OSError)):
        published.next_id()
    store.before_write = lambda: None
    assert published.next_id() == other.next_id() == 1


def test_exhausted_retries_say_how_many_there_were() -> None:
    store, pauses = Shared(), list[float]()
    store.before_write = never
    ids = UniqueIdGenerator(store, sleep=pauses.append)
    with pytest.raises(IdsUnavailable, match="26 tries"):
        ids.next_id()
    assert len(pauses) == 25
    assert all(0 <= pause <= 1 for pause in pauses)
    assert len(set(pauses)) > 1


@pytest.mark.parametrize("text", ["", "abc", "-5", "1.5", "0x10", "1" * 30, "\u0667", "1 2"])
def test_defect_corrupt_data_leaves_ids_from_zero_behind(text: str) -> None:
    store = Shared()
    ids = generator(store)
    ids.next_id()
    left = [ids.next_id() for _ in range(9)]
    store.text = text
    for _ in range(3):
        with pytest.raises(CorruptRecord, match="decimal number") as refusal:
            ids.next_id()
        assert repr(text[:80]) in str(refusal.value)
    store.text = "500"
    assert [*left, ids.next_id()][-1] == 500


def test_a_store_that_goes_back_is_refused() -> None:
    store = Shared()
    ids = generator(store)
    ids.next_id()
    store.text = "5"
    for _ in range(9):
        ids.next_id()
    with pytest.raises(CorruptRecord, match="11 or more"):
        ids.next_id()


def test_defect_the_version_is_fetched_just_before_the_write() -> None:
    """Variants of the listing read the ETag just before the write, which is no compare-and-swap."""

    class Fetching(Shared):
        def try_optimistic_write(self, text: str, read: OptimisticData) -> bool:
            self.before_write()
            return super().try_optimistic_write(text, self.get_data())

    def duplicates(store: Shared) -> int:
        rival, ids = generator(store), generator(store)
        store.before_write = lambda: rival_first(store, rival, found)
        found: list[int] = []
        found.append(ids.next_id())
        return len(found) - len(set(found))

    def rival_first(store: Shared, rival: UniqueIdGenerator, found: list[int]) -> None:
        store.before_write = lambda: None
        found.append(rival.next_id())

    assert duplicates(Fetching()) == 1  # the test bites
    assert duplicates(Shared()) == 0


def test_defect_generators_that_share_a_store_borrow_each_others_version() -> None:
    """The listing keeps the ETag in the store object: a later get_data changes a write."""

    class Remembering(Shared):
        def __init__(self) -> None:
            super().__init__()
            self._last = OptimisticData(None, None)

        def get_data(self) -> OptimisticData:
            self._last = super().get_data()
            return self._last

        def try_optimistic_write(self, text: str, read: OptimisticData) -> bool:
            return super().try_optimistic_write(text, self._last)

    def race(store: Shared) -> tuple[bool, bool]:
        first, second = store.get_data(), None
        other = Shared.get_data(store)
        assert Shared.try_optimistic_write(store, "11", other)  # a third node
        second = store.get_data()
        return store.try_optimistic_write("11", first), store.try_optimistic_write("21", second)

    assert race(Remembering())[0]  # the test bites: the second's version let the first one's pass
    assert race(Shared()) == (False, True)
    with coordination.connect("memory://") as client:
        stored = StoredText(client, "orders")
        first = stored.get_data()
        assert StoredText(client, "orders").try_optimistic_write("11", stored.get_data())
        second = stored.get_data()
        assert not stored.try_optimistic_write("11", first)
        assert stored.try_optimistic_write("21", second)


@pytest.mark.parametrize("seed", range(40))
def test_never_twice_whatever_happens_to_writes(seed: int) -> None:
    chance, store = random.Random(seed), Shared()

    def trouble() -> bool | None:
        roll = chance.random()
        if roll < 0.15:
            raise OSError("lost before it was done")
        return False if roll < 0.3 else None

    class Lossy(Shared):
        def try_optimistic_write(self, text: str, read: OptimisticData) -> bool:
            was_first = super().try_optimistic_write(text, read)
            if chance.random() < 0.2:
                raise OutcomeUnknown("the answer is lost")
            return was_first

    store = Lossy()
    store.before_write = trouble
    nodes = [generator(store, chance.choice([1, 3, 10])) for _ in range(4)]
    found: list[int] = []
    for _ in range(300):
        try:
            found.append(chance.choice(nodes).next_id())
        except (IdsUnavailable, OSError, OutcomeUnknown):
            continue
    assert len(found) == len(set(found)) > 100


def test_order_numbers_go_into_a_table_that_refuses_duplicates(
    tmp_path: Path, server: InProcessServer
) -> None:
    """As the article proves it: the primary key would refuse a duplicate."""
    path = tmp_path / "orders.db"
    with closing(sqlite3.connect(path)) as table:
        table.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    failures: list[Exception] = []

    def run(ids: UniqueIdGenerator) -> None:
        try:
            with closing(sqlite3.connect(path, timeout=60)) as table:
                for _ in range(10):
                    rows = [(ids.next_id(),) for _ in range(10)]
                    with table:
                        table.executemany("INSERT INTO orders VALUES (?)", rows)
        except Exception as error:
            failures.append(error)

    with coordination.connect(url_of(server)) as client:
        nodes = [UniqueIdGenerator(StoredText(client.sibling(), "orders"), 25) for _ in range(4)]
        threads = [threading.Thread(target=run, args=(node,)) for node in nodes for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with closing(sqlite3.connect(path)) as table:
            (count,) = table.execute("SELECT count(*) FROM orders").fetchone()
        assert (failures, count) == ([], 1200)
        # Both forms may be used for one name.
        after = client.ids("orders", 10).next_id()
        assert after == int(UniqueIdGenerator(StoredText(client, "orders")).next_id()) - 10 > 1200


def test_the_blob_is_bare_text_that_people_can_read_and_write(server: InProcessServer) -> None:
    azure = BlobServiceClient.from_connection_string(server.connection_string)
    with coordination.connect(url_of(server)) as client:
        ids = UniqueIdGenerator(StoredText(client, "invoices"))
        assert ids.next_id() == 1
        blob = azure.get_blob_client("classic", "ids/invoices")
        assert blob.download_blob().readall() == b"1001"
        blob.upload_blob(b" 77000\n", overwrite=True)
        assert UniqueIdGenerator(StoredText(client, "invoices")).next_id() == 77000
        blob.upload_blob(b"\xff", overwrite=True)
        with pytest.raises(CorruptRecord):
            UniqueIdGenerator(StoredText(client, "invoices")).next_id()


def test_what_a_stored_text_answers() -> None:
    store = Scripted("lost", "down")
    text = StoredText(Client(store), "x")
    with pytest.raises(OutcomeUnknown):
        text.try_optimistic_write("1", text.get_data())
    assert text.get_data().text == "1"
    with pytest.raises(StoreUnavailable):
        text.try_optimistic_write("2", text.get_data())
    assert not text.try_optimistic_write("2", OptimisticData(None, None))
    assert isinstance(store.cas("k", None, b"", 1.0), Applied)
    assert isinstance(store.cas("k", None, b"", 1.0), Conflict)


def test_ids_end_below_two_to_the_63() -> None:
    ids = generator(Shared(str(ID_MAX - 9)))
    assert [ids.next_id() for _ in range(10)][-1] == ID_MAX
    for _ in range(2):
        with pytest.raises((IdsExhausted, CorruptRecord)):
            ids.next_id()


def test_a_forked_child_has_a_range_of_its_own(server: InProcessServer, tmp_path: Path) -> None:
    with coordination.connect(f"file://{tmp_path}/ids?sync=0") as client:
        ids = UniqueIdGenerator(StoredText(client, "forked"), 10)
        assert ids.next_id() == 1
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, b"%d" % ids.next_id())
            os._exit(0)
        os.waitpid(child, 0)
        assert (ids.next_id(), os.read(read, 100)) == (2, b"11")


@pytest.mark.parametrize("bad", [{"range_size": 0}, {"max_retries": -1}, {"first": -1}])
def test_options_that_make_no_sense(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="range_size"):
        UniqueIdGenerator(Shared(), **bad)  # type: ignore[arg-type]  # wrong on purpose
