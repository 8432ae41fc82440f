"""The whole project is tidy: every rule over every file that it covers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tidy import (
    put_path,
    ratchets,
    rules_bodies,
    rules_calls,
    rules_docs,
    rules_modules,
    rules_reads,
    rules_shape,
    rules_words,
)
from tests.tidy.sources import PACKAGE, ROOT, Source, package_sources, python_sources, text_files

Rule = Callable[[Source], list[str]]

EVERYWHERE: tuple[Rule, ...] = (
    rules_shape.long_functions,
    rules_shape.long_file,
    rules_shape.long_lines,
    rules_shape.missing_module_docstring,
    rules_shape.banned_module_name,
    rules_shape.untyped_functions,
    rules_docs.documented_in_vain,
)
IN_THE_PACKAGE: tuple[Rule, ...] = (
    rules_calls.clock_or_chance,
    rules_calls.environment,
    rules_calls.of_one_system,
)
IN_THE_TESTS: tuple[Rule, ...] = (rules_calls.skips,)
TEXTS: tuple[rules_words.TextRule, ...] = (
    rules_words.unfinished,
    rules_words.machine_paths,
    rules_words.registries,
)


def _report(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize("rule", EVERYWHERE, ids=lambda rule: rule.__name__)
def test_every_python_file(rule: Rule) -> None:
    _report([complaint for source in python_sources() for complaint in rule(source)])


@pytest.mark.parametrize("rule", IN_THE_PACKAGE, ids=lambda rule: rule.__name__)
def test_every_module_of_the_package(rule: Rule) -> None:
    _report([complaint for source in package_sources() for complaint in rule(source)])


@pytest.mark.parametrize("rule", IN_THE_TESTS, ids=lambda rule: rule.__name__)
def test_every_test(rule: Rule) -> None:
    tests = [source for source in python_sources() if source.path.parts[0] == "tests"]
    _report([complaint for source in tests for complaint in rule(source)])


@pytest.mark.parametrize("rule", TEXTS, ids=lambda rule: rule.__name__)
def test_every_text(rule: rules_words.TextRule) -> None:
    _report([complaint for path, text in text_files().items() for complaint in rule(path, text)])


def test_no_module_is_dead() -> None:
    entries = rules_modules.entry_points((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    _report(rules_modules.dead_modules(python_sources(), entries))


def test_docstrings_name_only_files_that_are_there() -> None:
    ends = rules_modules.ends_of(text_files())
    sources = package_sources()
    _report([one for source in sources for one in rules_modules.named_in_vain(source, ends)])


def test_what_is_not_yet_served_still_is_not() -> None:
    assert all(rules_modules.NOT_YET_SERVED.values())
    _report(rules_modules.served_after_all(python_sources()))


def test_only_their_package_knows_the_kinds_of_bodies() -> None:
    _report(rules_bodies.bodies_taken_apart(package_sources()))


def test_no_decision_takes_a_record_by_its_position() -> None:
    sources = package_sources()
    fields = rules_reads.record_fields(sources)
    _report([one for source in sources for one in rules_reads.records_by_position(source, fields)])


def test_every_folder_is_a_package() -> None:
    _report(rules_modules.folders_without_init(python_sources()))


def test_exceptions_have_a_reason_and_are_still_needed() -> None:
    by_path = {source.path: source for source in python_sources()}
    for path, (lines, reason) in rules_shape.FILE_EXCEPTIONS.items():
        found = len(by_path[path].text.splitlines())
        assert reason and rules_shape.FILE_LINES_MAX < found <= lines, path
    for (path, name), (lines, reason) in rules_shape.FUNCTION_EXCEPTIONS.items():
        longest = max(
            (node.end_lineno or 0) - node.lineno + 1
            for node in rules_shape.functions(by_path[path])
            if node.name == name
        )
        assert reason and rules_shape.FUNCTION_LINES_MAX < longest <= lines, (path, name)


def test_what_may_only_fall_has_not_risen() -> None:
    allowed = ratchets.allowed()
    found = ratchets.measured()
    assert set(allowed) == {*found, put_path.RATCHET}
    for name, figures in found.items():
        _report([f"{name}: {one}" for one in ratchets.complaints(figures, allowed[name])])


def test_a_put_blob_passes_through_no_more_files() -> None:
    files = put_path.files_of_a_put()
    most = ratchets.allowed()[put_path.RATCHET][put_path.NAME]
    # Fewer may be the chance of one run, so that the list is lowered by hand.
    assert len(files) <= most, "\n".join(files)
    assert "src/strongroom/servers/requests/pipeline.py" in files


def test_the_rules_see_the_project() -> None:
    """A rule over no files would pass for ever."""
    paths = {source.path for source in python_sources()}
    assert PACKAGE / "__init__.py" in paths
    assert {"pyproject.toml", "Makefile"} <= {str(path) for path in text_files()}
