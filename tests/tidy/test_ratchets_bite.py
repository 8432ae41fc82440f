"""Each ratchet counts its breaches, and its list may only be lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

import pytest

from tests.tidy import ratchets
from tests.tidy.sources import Source, parse

MODULE = "src/strongroom/services/blobs.py"
LONG = " ".join(["Word", *["word"] * 25]) + "."
SHORT = " ".join(["Word", *["word"] * 24]) + "."

Measure = Callable[[Sequence[Source]], ratchets.Found]


def sentences(*texts: str) -> int:
    """Return how many long sentences these modules have."""
    found = ratchets.long_sentences([parse(MODULE, text) for text in texts], {})
    return sum(len(places) for places in found.values())


@pytest.mark.parametrize(
    "text",
    [
        f'"""{LONG}"""',
        f'"""Short.\n\n{SHORT} {LONG}\n"""',
        f'def f() -> None:\n    """{LONG}"""',
        f'class C:\n    """C."""\n    x: int\n    """{LONG}"""',
        f'x = 1\n"""{LONG}"""',
        f"# {LONG}",
        "\n".join(f"    # {word}" for word in LONG.split()),
        f'def f() -> None:\n    """F.\n\n    Arguments:\n        x: {LONG}\n    """',
    ],
)
def test_a_long_sentence_is_counted(text: str) -> None:
    assert sentences(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        f'"""{SHORT} {SHORT}"""',
        f'"""- {SHORT}\n- {SHORT}"""',
        f'"""| {LONG} | table |"""',
        f'x = "{LONG}"',
        f"x = 1  # noqa: {LONG}",
        f"# {SHORT}\n\n# {SHORT}",
        f"# {SHORT} `name` is code.",
        f'def f() -> None:\n    """F.\n\n    Arguments:\n        x: {SHORT}\n        y: {SHORT}\n'
        '    """',
        f'"""{SHORT[:-1]} :: -- / {SHORT[-1]}"""',
    ],
)
def test_what_is_short_enough_is_not(text: str) -> None:
    assert sentences(text) == 0


def test_pages_are_counted_without_code_tables_and_headings() -> None:
    path = PurePosixPath("docs/page.md")
    page = f"# {LONG}\n\n| {LONG} |\n\n    {LONG}\n\n```\n{LONG}\n```\n\nText. {LONG}\n"
    (complaint,) = ratchets.long_sentences([], {path: page})["docs/page.md"]
    assert complaint.startswith("docs/page.md:11 (26 words)")


def test_a_public_class_name_in_two_modules_is_counted() -> None:
    sources = [
        parse("src/strongroom/a.py", "class Page: pass\nclass _Own: pass\nclass One: pass"),
        parse("src/strongroom/b.py", "class Page: pass\nclass _Own: pass\nclass Two: pass"),
    ]
    assert ratchets.doubled_names(sources) == {
        "Page": ["src/strongroom/a.py", "src/strongroom/b.py"]
    }


def _large(count: int) -> str:
    fields = "".join(f"    f{number}: int\n" for number in range(count - 3))
    return (
        f"class C:\n{fields}    x = 1\n    def m(self) -> None:\n"
        "        self.y, self.x = 1, 2\n        other.z = 3\n"
    )


def _named(count: int) -> str:
    return ", ".join(f"a{number}: int" for number in range(count))


CASES: tuple[tuple[Measure, str, int], ...] = (
    (ratchets.large_classes, _large(31), 31),
    (ratchets.large_classes, _large(30), 0),
    (ratchets.many_parameters, f"def f({_named(7)}) -> None: pass", 7),
    (ratchets.many_parameters, f"def f({_named(6)}, *, b: int, c: int) -> None: pass", 0),
    (ratchets.many_parameters, f"class C:\n    def f(self, {_named(7)}) -> None: pass", 7),
    (ratchets.many_parameters, f"class C:\n    async def f(self, {_named(6)}) -> None: pass", 0),
    (
        ratchets.many_parameters,
        f"class C:\n    def f({_named(7)}) -> None: pass\nclass D:\n    def f({_named(8)}): pass",
        15,
    ),
    (ratchets.many_arguments, "f(1, 2, 3, 4, 5, 6, 7)", 1),
    (ratchets.many_arguments, "f(1, 2, 3, 4, 5, 6, g=7, h=8)", 0),
    (ratchets.hidden_state, "def _f(services: S) -> None: services.held.of(Opens).close()", 1),
    (ratchets.hidden_state, "def f(services: S) -> None: services.held.of(Opens).close()", 0),
    (
        ratchets.hidden_state,
        "class C:\n    def _f(self) -> None:\n        def f() -> C: self._s.disposable.of(C)",
        1,
    ),
    (ratchets.hidden_state, "class C:\n    def __init__(self, s: S): self._o = s.held.of(O)", 0),
)


@pytest.mark.parametrize(("measure", "text", "figure"), CASES)
def test_what_is_too_large_is_counted(measure: Measure, text: str, figure: int) -> None:
    found = measure([parse(MODULE, text)])
    assert sum(len(counted) for counted in found.values()) == figure


def test_a_folder_of_more_than_twenty_modules_is_counted() -> None:
    sources = [parse(f"src/strongroom/wire/m{number}.py", "") for number in range(20)]
    sources.append(parse("src/strongroom/wire/__init__.py", ""))
    assert ratchets.large_folders(sources) == {}
    sources.append(parse("src/strongroom/wire/one_more.py", ""))
    assert len(ratchets.large_folders(sources)["src/strongroom/wire"]) == 21


def test_a_figure_above_the_list_is_shown_with_its_places() -> None:
    complaints = ratchets.complaints({"a": ["x", "y"], "new": ["z"]}, {"a": 1})
    assert complaints == [
        "a has 2, and 1 are allowed:",
        "    x",
        "    y",
        "new has 1, and 0 are allowed:",
        "    z",
    ]


@pytest.mark.parametrize("found", [{"a": ["x"]}, {}])
def test_a_figure_below_the_list_asks_to_lower_it(found: ratchets.Found) -> None:
    (complaint,) = ratchets.complaints(found, {"a": 2})
    assert "lower the list" in complaint


def test_the_list_is_lowered_and_never_raised() -> None:
    allowed = {"one": {"fell": 3, "rose": 1, "gone": 4}, "by hand": {"x": 5}}
    found = {"one": {"fell": ["a"], "rose": ["b", "c"], "new": ["d"]}}
    lowered = ratchets.lowered(found, allowed)
    assert lowered == {"one": {"fell": 1, "rose": 1}, "by hand": {"x": 5}}
    assert '"fell" = 1' in ratchets.written(lowered)
