"""The frozen table: its exact entries, its laws, and its independence of the running Python."""

from __future__ import annotations

import ast
import hashlib
import inspect

from strongroom.semantics.file import names, upcase

# Version 1 of the table, as little-endian units. Another digest is another version.
DIGEST = "8d0d0031bda5ac16ca4301aad1dde9a9db2359dfdbbbc10491fa7f635ec11359"
SURROGATES = range(0xD800, 0xE000)


def test_version_one_has_these_entries_on_every_python() -> None:
    table = upcase.unit_table()
    packed = b"".join(unit.to_bytes(2, "little") for unit in table)
    assert (upcase.VERSION, len(table)) == (1, 65_536)
    assert hashlib.sha256(packed).hexdigest() == DIGEST


def test_an_upper_case_is_its_own_upper_case_so_that_folding_twice_is_folding_once() -> None:
    table = upcase.unit_table()
    assert all(table[upper] == upper for upper in table)


def test_surrogates_are_untouched() -> None:
    assert not {*upcase.UPPER, *upcase.UPPER.values()} & set(SURROGATES)


def test_every_entry_is_one_unit_for_one() -> None:
    assert all(
        0 <= low < upcase.UNITS and 0 <= up < upcase.UNITS for low, up in upcase.UPPER.items()
    )


def test_neither_module_asks_the_running_python_for_the_case_of_a_letter() -> None:
    asked = {"upper", "title", "casefold", "swapcase", "capitalize", "unicodedata", "IGNORECASE"}
    for module in (upcase, names):
        tree = ast.parse(inspect.getsource(module))
        found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        found |= {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not found & asked


def test_the_letters_on_which_tables_differ() -> None:
    """The entries are those of NTFS: see the rules in the module's docstring."""
    pairs = {
        "a": "A", "z": "Z", "é": "É", "ÿ": "Ÿ", "\u03c2": "\u03a3", "\u03c3": "\u03a3", "я": "Я",
        "\uff41": "\uff21", "\u1f80": "\u1f88",
    }  # fmt: skip
    alone = ("ß", "\u0131", "µ", "\u017f", "\u0130", "\u01c5", "\u1e9b", "\u0149", "\ufb01")
    assert {low: names.fold(low) for low in pairs} == pairs
    assert [names.fold(one) for one in alone] == list(alone)
