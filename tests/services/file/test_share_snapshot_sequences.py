"""Any sequence of changes, snapshots and sweeps: each snapshot keeps the share's state."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from strongroom.operations.file import file, rename, share
from strongroom.services.core.runner import Services
from strongroom.services.file.rest.files import SetFileMetadata, SetFileProperties
from strongroom.services.file.rest.renaming import RenameNode, RenameSource
from strongroom.services.file.shares.share_snapshots import DeleteShare, SnapshotShare
from strongroom.services.sweeper import Sweeper
from strongroom.values import Metadata
from tests.effort import examples
from tests.services import container_calls as calls
from tests.services import file_calls as do
from tests.services.service_engine import ServiceEngine
from tests.services.share_model import Files, held

SIZES = (600, 5, 9_000, 70_000, 140_000, 0)
# Names that differ only in case are the same name.
NAMES = ("f", "F", "g", "d", "h", "i", "j")
WORDS = (
    *("create", "create", "create", "put", "put", "put", "clear", "resize", "metadata", "mkdir"),
    *("mkdir", "delete", "rmdir", "move", "move directory", "move directory", "replace"),
    *("snapshot", "snapshot", "drop snapshot", "sweep"),
)
_ANY = st.integers(0, 11)
STEPS = st.lists(
    st.tuples(st.sampled_from(WORDS), _ANY, _ANY, _ANY, _ANY), min_size=15, max_size=40
)
Step = tuple[str, int, int, int, int]


class Node:
    """A directory (data None) or a file."""

    def __init__(self, name: str, data: bytes | None = None, metadata: Metadata = ()) -> None:
        self.name = name
        self.data = data
        self.metadata = metadata

    def shown(self) -> tuple[str, Metadata, bytes | None]:
        return self.name, self.metadata, self.data


Tree = dict[str, Node]
Shown = dict[str, tuple[str, Metadata, bytes | None]]


class Model:
    """The expected state of the share, and of each snapshot."""

    def __init__(self) -> None:
        self.tree: Tree = {}
        self.snapshots: dict[int, tuple[Shown, Files]] = {}

    def is_directory(self, path: str) -> bool:
        return not path or (path in self.tree and self.tree[path].data is None)

    def is_file(self, path: str) -> bool:
        return path in self.tree and self.tree[path].data is not None

    def below(self, path: str) -> list[str]:
        return [one for one in self.tree if one.startswith(path + "/")]

    def shown(self) -> Shown:
        return {path: node.shown() for path, node in self.tree.items()}


def join(directory_path: str, name: str) -> str:
    return f"{directory_path}/{name}".lstrip("/")


def pick(choices: Sequence[str], number: int) -> str:
    return choices[number % len(choices)]


async def act(on: Services, model: Model, step: Step, count: int) -> None:
    """Apply a step to the share and to the model, if it would succeed.

    The numbers of a step choose among the existing directories, files, names, sizes.
    """
    what, first, second, third, number = step
    files = sorted(path for path in model.tree if model.is_file(path))
    directories = sorted(path for path in model.tree if model.is_directory(path))
    parent, name = pick(["", *directories], first), pick(NAMES, second)
    size = SIZES[number % len(SIZES)]
    if what in ("create", "mkdir"):
        await make(on, model, what, (parent, name), size, count)
    elif what in ("put", "clear", "resize", "metadata") and files:
        path, data = pick(files, third), bytes((1 + count % 250,)) * size
        await change(on, model.tree[path], path.upper(), what, data, count)
    elif what == "delete" and files:
        await do.delete(on, pick(files, third))
        del model.tree[pick(files, third)]
    elif what == "rmdir" and directories:
        path = pick(directories, third)
        if not model.below(path):
            await do.rmdir(on, path)
            del model.tree[path]
    elif what == "move directory" and directories:
        await move(on, model, what, pick(directories, third), parent, name)
    elif what == "replace" and len(files) > 1:
        other = third + 1 + number % (len(files) - 1)
        parent, _, name = pick(files, other).rpartition("/")
        await move(on, model, what, pick(files, third), parent, name)
    elif what == "move" and files:
        await move(on, model, what, pick(files, third), parent, name)
    else:
        await about_snapshots(on, model, what, number)


async def make(
    on: Services, model: Model, what: str, at: tuple[str, str], size: int, count: int
) -> None:
    """Create a file or a directory, or create a file again."""
    parent, name = at
    path = join(parent, name).lower()
    if what == "create" and (path not in model.tree or model.is_file(path)):
        await do.create(on, join(parent, name), size)
        kept = model.tree[path].name if path in model.tree else name
        model.tree[path] = Node(kept, bytes(size))
    elif what == "mkdir" and path not in model.tree:
        pairs = (("n", str(count)),)
        await do.mkdir(on, join(parent, name), metadata=pairs)
        model.tree[path] = Node(name, None, pairs)


async def change(on: Services, node: Node, path: str, what: str, data: bytes, count: int) -> None:
    before = node.data or b""
    if what == "put" and data and before:
        first = count * 37 % len(before)
        piece = data[: len(before) - first]
        await do.put(on, path, first, piece)
        node.data = before[:first] + piece + before[first + len(piece) :]
    elif what == "clear" and before:
        first = count * 37 % len(before)
        length = min(max(1, len(data)), len(before) - first)
        await do.clear(on, path, first, length)
        node.data = before[:first] + bytes(length) + before[first + length :]
    elif what == "resize":
        wanted = SetFileProperties(size_bytes=len(data))
        await do.run(on, file.SET_FILE_PROPERTIES, path, wanted)
        node.data = (before + bytes(len(data)))[: len(data)]
    elif what == "metadata":
        pairs = SetFileMetadata(metadata=(("n", str(count)),))
        await do.run(on, file.SET_FILE_METADATA, path, pairs)
        node.metadata = pairs.metadata


async def move(
    on: Services, model: Model, what: str, given_path: str, parent: str, name: str
) -> None:
    path, new_path = given_path.lower(), join(parent, name).lower()
    whole = what == "move directory"
    is_there = path in model.tree and model.is_directory(path) == whole
    is_free = new_path not in model.tree or new_path == path
    replaces = what == "replace" and model.is_file(new_path) and new_path != path
    if not is_there or not model.is_directory(parent.lower()) or not (is_free or replaces):
        return
    if whole and f"{new_path}/".startswith(f"{path}/") and new_path != path:
        return
    operation = rename.RENAME_DIRECTORY if whole else rename.RENAME_FILE
    source = RenameSource("", f"/{do.SHARE}/{given_path}", f"/{do.SHARE}/{new_path}")
    await do.run(on, operation, join(parent, name), RenameNode(source=source, replaces=replaces))
    if join(parent, name) == given_path:
        return  # exactly the same name: nothing changes
    moved = model.tree.pop(path)
    below = {one: model.tree.pop(one) for one in model.below(path)}
    model.tree[new_path] = Node(name, moved.data, moved.metadata)
    for one, node in below.items():
        model.tree[new_path + one[len(path) :]] = node


async def about_snapshots(on: Services, model: Model, what: str, number: int) -> None:
    if what == "snapshot":
        before = await held(on)
        taken = await do.run(on, share.SNAPSHOT_SHARE, "", SnapshotShare())
        model.snapshots[taken.snapshot] = model.shown(), before
    elif what == "drop snapshot" and model.snapshots:
        stamp = sorted(model.snapshots)[number % len(model.snapshots)]
        await do.run(on, share.DELETE_SHARE, "", DeleteShare(), snapshot=stamp)
        del model.snapshots[stamp]
    elif what == "sweep":
        await sweep(on)


async def sweep(on: Services) -> None:
    on.store.advance(1)
    await Sweeper(on).run_once()


async def check(on: Services, model: Model) -> None:
    """Check that the share equals the model, and each snapshot the share's earlier state."""
    assert do.problems(on) == []
    found = await held(on)
    assert {path: (one.name, one.metadata, one.data) for path, one in found.items()} == (
        model.shown()
    )
    for stamp, (shown, before) in model.snapshots.items():
        found = await held(on, stamp, page_names=2)
        assert found == before
        assert {path: (one.name, one.metadata, one.data) for path, one in found.items()} == shown


async def empty(on: Services, model: Model) -> None:
    """Delete everything, and check that nothing is left."""
    for stamp in model.snapshots:
        await do.run(on, share.DELETE_SHARE, "", DeleteShare(), snapshot=stamp)
    model.snapshots.clear()
    await sweep(on)
    await check(on, model)
    for path in sorted(model.tree, reverse=True):
        await (do.rmdir(on, path) if model.tree[path].data is None else do.delete(on, path))
    await sweep(on)
    store = on.store
    assert isinstance(store, ServiceEngine)
    assert list(store.content_ids()) == []
    named = [ref for ref in do.of_files(on) if ref.key.name != b"s"]
    assert named == [] and do.problems(on) == []


def play(steps: list[Step]) -> None:
    async def scenario() -> None:
        on, model = await do.services(), Model()
        for count, step in enumerate(steps):
            await act(on, model, step, count)
            if step[0] == "sweep":
                await check(on, model)
        await check(on, model)
        await sweep(on)
        await check(on, model)
        await empty(on, model)

    calls.run(scenario)


@examples(300)
@given(STEPS)
def test_each_snapshot_holds_what_the_share_held(steps: list[Step]) -> None:
    """F-SNP-03, F-SNP-04, F-SNP-06."""
    play(steps)
