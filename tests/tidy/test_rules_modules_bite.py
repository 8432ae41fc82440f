"""The rules about the whole package complain about a dead module and about a stray folder."""

from __future__ import annotations

import pytest

from tests.tidy.rules_modules import (
    NOT_YET_SERVED,
    dead_modules,
    ends_of,
    entry_points,
    folders_without_init,
    imported_modules,
    named_in_vain,
    served_after_all,
)
from tests.tidy.sources import Source, parse

ENTRIES = {"strongroom", "strongroom.cli"}
INIT = parse("src/strongroom/__init__.py", "")
CLI = parse("src/strongroom/cli/__init__.py", "from strongroom.wire import xml")
WIRE = parse("src/strongroom/wire/__init__.py", "")
XML = parse("src/strongroom/wire/xml.py", "")
STRAY = parse("src/strongroom/wire/stray.py", "")
CHECKER = parse("src/strongroom/testing/histories.py", "")


def test_a_tree_in_which_everything_is_used_passes() -> None:
    assert dead_modules([INIT, CLI, WIRE, XML], ENTRIES) == []


def test_a_module_that_nothing_imports_is_dead() -> None:
    assert dead_modules([INIT, CLI, WIRE, XML, STRAY], ENTRIES) == [
        "src/strongroom/wire/stray.py is imported by nothing"
    ]


def test_a_module_that_imports_itself_is_dead() -> None:
    own = parse("src/strongroom/wire/stray.py", "import strongroom.wire.stray")
    assert len(dead_modules([INIT, CLI, WIRE, XML, own], ENTRIES)) == 1


def test_a_test_gives_life_only_to_what_is_shipped_for_users() -> None:
    test = parse(
        "tests/test_x.py",
        "import strongroom.wire.stray\nfrom strongroom.testing.histories import check",
    )
    dead = dead_modules([INIT, CLI, WIRE, XML, STRAY, CHECKER, test], ENTRIES)
    assert dead == ["src/strongroom/wire/stray.py is imported by nothing"]


def test_a_docstring_names_a_file_by_the_end_of_its_path() -> None:
    text = '"""Not here: documents (xml.py, wire/xml.py), sockets (http.py, servers/xml.py)."""'
    source = parse("src/strongroom/wire/stray.py", text)
    assert named_in_vain(source, ends_of([XML.path, CLI.path])) == [
        "src/strongroom/wire/stray.py names http.py, which is not there",
        "src/strongroom/wire/stray.py names servers/xml.py, which is not there",
    ]


RULE = parse(
    "src/strongroom/wire/smb/requests/change_notify.py",
    "from strongroom.wire.smb.requests import change_notify",
)


@pytest.fixture
def rule_not_yet_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NOT_YET_SERVED, RULE.module, "nothing uses it yet")


@pytest.mark.usefixtures("rule_not_yet_served")
def test_a_test_gives_life_to_rules_that_no_service_uses_yet() -> None:
    tree = [INIT, CLI, WIRE, XML, RULE]
    assert dead_modules(tree, ENTRIES) == [f"{RULE.path} is imported by nothing"]
    test = parse("tests/test_x.py", "from strongroom.wire.smb.requests.change_notify import law")
    assert dead_modules([*tree, test], ENTRIES) == []


@pytest.mark.usefixtures("rule_not_yet_served")
def test_the_list_of_rules_without_a_service_shrinks_with_the_first_service() -> None:
    assert served_after_all([INIT, RULE]) == []
    service = parse(
        "src/strongroom/servers/smb/x.py", "from strongroom.wire.smb.requests import change_notify"
    )
    complaints = served_after_all([INIT, RULE, service])
    assert complaints and all(
        "take strongroom.wire.smb.requests.change_notify out" in one for one in complaints
    )


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("src/strongroom/wire/xml.py", "from . import dates", "strongroom.wire.dates"),
        ("src/strongroom/wire/xml.py", "from ..errors import E", "strongroom.errors"),
        ("src/strongroom/wire/__init__.py", "from .xml import read", "strongroom.wire.xml"),
        ("src/strongroom/app.py", "import strongroom.wire.xml", "strongroom.wire.xml"),
    ],
)
def test_imports_are_resolved(path: str, text: str, expected: str) -> None:
    assert expected in imported_modules(parse(path, text))


def test_a_folder_without_init_is_reported() -> None:
    stray: Source = parse("src/strongroom/odd/thing.py", "")
    assert folders_without_init([INIT, stray]) == ["src/strongroom/odd has no __init__.py"]
    assert folders_without_init([INIT]) == []


def test_entry_points_come_from_the_project_file() -> None:
    text = (
        '[project]\nname = "x"\n[project.scripts]\nx = "strongroom.cli:main"\n'
        '[project.entry-points.pytest11]\nx = "strongroom.testing.plugin"\n'
    )
    assert entry_points(text) == {
        "strongroom", "strongroom.__main__", "strongroom.cli", "strongroom.testing.plugin",
    }  # fmt: skip
