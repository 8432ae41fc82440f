"""The grammar of the command line, and its errors."""

from __future__ import annotations

import pytest

from strongroom_azurite.command_line import Given, UsageError, parse
from strongroom_azurite.commands import AZURITE, AZURITE_BLOB, COMMANDS, Command
from strongroom_azurite.flags import FLAGS, flags_of


def _values(given: Given) -> dict[str, str]:
    return {flag.name: value for flag, value in given.values}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--blobPort", "1"], {"blobPort": "1"}),
        (["--blobPort=1"], {"blobPort": "1"}),
        (["-l", "data"], {"location": "data"}),
        (["-l=data"], {"location": "data"}),
        (["--l", "data"], {"location": "data"}),
        (["-sL"], {"silent": "", "loose": ""}),
        (["-sl", "data"], {"silent": "", "location": "data"}),
        (["--silent", "true", "--loose"], {"silent": "", "loose": ""}),
        (["--silent=true"], {"silent": ""}),
        (["--pwd=-x=y"], {"pwd": "-x=y"}),
        (["--pwd="], {"pwd": ""}),
        (["--pwd", ""], {"pwd": ""}),
    ],
)
def test_flags_are_read_in_each_form(words: list[str], expected: dict[str, str]) -> None:
    given = parse(AZURITE, words)
    assert _values(given) == expected
    assert given.words == ()


def test_words_that_are_no_flags_are_kept_apart() -> None:
    given = parse(AZURITE, ["start", "--silent", "now", "--", "--loose"])
    assert given.words == ("start", "now", "--loose")
    assert _values(given) == {"silent": ""}


def test_of_a_flag_given_twice_the_last_value_counts() -> None:
    given = parse(AZURITE, ["--blobPort", "1", "--blobPort", "2", "-s", "-s"])
    assert given.value("blobPort") == "2"
    assert [flag.name for flag in given.repeated()] == ["blobPort"]
    assert [flag.name for flag in given.flags()] == ["blobPort", "silent"]


@pytest.mark.parametrize(
    ("command", "words", "text"),
    [
        (AZURITE, ["--blob-host", "x"], "no flag --blob-host; the nearest is --blobHost"),
        (AZURITE, ["--BLOBPORT", "1"], "no flag --BLOBPORT; the nearest is --blobPort"),
        (AZURITE, ["--inMemory"], "no flag --inMemory; the nearest is --inMemoryPersistence"),
        (AZURITE, ["--skipApiVersion=1"], "--skipApiVersion; the nearest is --skipApiVersionCheck"),
        (AZURITE, ["--no-silent"], "no flag --no-silent; the nearest is --silent"),
        (AZURITE, ["-location", "x"], "no flag -location; the nearest is --location"),
        (AZURITE, ["-x"], "no flag -x; the nearest is --"),
        (AZURITE, ["---"], "no flag ---; the nearest is --"),
        (AZURITE_BLOB, ["--queuePort", "1"], "azurite-blob has no flag --queuePort; azurite has"),
        (AZURITE_BLOB, ["--filePort", "1"], "azurite-blob has no flag --filePort; azurite has it"),
        (AZURITE, ["--blobPort"], "--blobPort needs a value: --blobPort PORT"),
        (AZURITE, ["--blobPort", "--silent"], "--blobPort needs a value"),
        (AZURITE, ["-ls"], "-l needs a value; write it by itself"),
        (AZURITE, ["--silent", "false"], "--silent is a switch"),
        (AZURITE, ["--silent=no"], "--silent is a switch"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(
    command: Command, words: list[str], text: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(command, words)
    assert text in str(refusal.value)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_each_flag_of_a_command_is_read(command: Command) -> None:
    for flag in flags_of(command):
        value = "word" if flag.value else ""
        names = [f"--{flag.name}", *([f"-{flag.short}"] if flag.short else [])]
        for name in names:
            [(found, read)] = parse(command, [name, *([value] if value else [])]).values
            assert (found, read) == (flag, value)


def test_names_and_letters_are_unique() -> None:
    names = [flag.name for flag in FLAGS]
    letters = [flag.short for flag in FLAGS if flag.short]
    assert len(names) == len({*names}) and len(letters) == len({*letters})
