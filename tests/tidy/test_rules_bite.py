"""Each tidy rule complains about a breach, and not about similar code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

import pytest

from tests.tidy import rules_calls, rules_docs, rules_shape, rules_words
from tests.tidy.sources import Source, parse

MODULE = "src/strongroom/services/blobs.py"
DECLARATIONS = "src/strongroom/operations/blob.py"
CLOCK = "src/strongroom/clock.py"
TEST = "tests/services/test_blobs.py"


def _function(lines: int) -> str:
    return "def f() -> None:\n" + "    pass\n" * (lines - 1)


def _documenting(name: str, head: str = "def f(x: int, *, y: int) -> None") -> str:
    return (
        f'{head}:\n    """F.\n\n    Arguments:\n        {name}: why.\n            More.\n    """\n'
    )


BAD = (
    (rules_shape.long_functions, MODULE, _function(71)),
    (rules_shape.long_functions, MODULE, "class C:\n async " + _function(71)),
    (rules_shape.long_file, MODULE, "x = 1\n" * 501),
    (rules_shape.long_file, DECLARATIONS, "x = 1\n" * 501 + _function(2)),
    (rules_shape.long_file, "src/strongroom/services/operations.py", "x = 1\n" * 501),
    (rules_shape.long_lines, MODULE, "x = '" + "y" * 96 + "'"),
    (rules_shape.missing_module_docstring, MODULE, "x = 1"),
    (rules_shape.missing_module_docstring, MODULE, ""),
    (rules_shape.banned_module_name, "src/strongroom/wire/utils.py", ""),
    (rules_shape.banned_module_name, "src/strongroom/helpers/xml.py", ""),
    (rules_shape.banned_module_name, "tests/common.py", ""),
    (rules_shape.untyped_functions, MODULE, "def f(): pass"),
    (rules_shape.untyped_functions, MODULE, "def f(x) -> None: pass"),
    (rules_shape.untyped_functions, MODULE, "def f(*x) -> None: pass"),
    (rules_shape.untyped_functions, MODULE, "def f(*, x) -> None: pass"),
    (rules_shape.untyped_functions, MODULE, "class C:\n    async def f(self): pass"),
    (rules_docs.documented_in_vain, MODULE, _documenting("z")),
    (rules_docs.documented_in_vain, MODULE, _documenting("x, z")),
    (rules_docs.documented_in_vain, MODULE, _documenting("z", "class C(Struct)")),
    (rules_calls.clock_or_chance, MODULE, "import time\nx = time.time()"),
    (rules_calls.clock_or_chance, MODULE, "import time as t\nx = t.monotonic_ns()"),
    (rules_calls.clock_or_chance, MODULE, "from time import perf_counter as p\nx = p()"),
    (rules_calls.clock_or_chance, MODULE, "import time\nx = time.gmtime()"),
    (rules_calls.clock_or_chance, MODULE, "import time\nx = time.strftime('%Y')"),
    (rules_calls.clock_or_chance, MODULE, "import datetime\nx = datetime.datetime.now()"),
    (rules_calls.clock_or_chance, MODULE, "from datetime import datetime\nx = datetime.utcnow()"),
    (rules_calls.clock_or_chance, MODULE, "from datetime import datetime as d\nx = d.now(None)"),
    (rules_calls.clock_or_chance, MODULE, "from uuid import uuid4\nx = f(default=uuid4)"),
    (rules_calls.clock_or_chance, MODULE, "import uuid\nx = uuid.uuid1()"),
    (rules_calls.clock_or_chance, MODULE, "import os\nx = os.urandom(8)"),
    (rules_calls.clock_or_chance, MODULE, "import random\nx = random.choice([1])"),
    (rules_calls.clock_or_chance, MODULE, "from random import Random\nx = Random()"),
    (rules_calls.clock_or_chance, MODULE, "import secrets\nx = secrets.token_hex()"),
    (rules_calls.clock_or_chance, MODULE, "import email.utils\nx = email.utils.formatdate()"),
    (rules_calls.environment, MODULE, "import os\nx = os.environ['HOME']"),
    (rules_calls.environment, MODULE, "from os import getenv\nx = getenv('HOME')"),
    (rules_calls.of_one_system, MODULE, "import fcntl"),
    (rules_calls.of_one_system, MODULE, "from resource import getrlimit"),
    (rules_calls.of_one_system, MODULE, "import sys\nx = sys.platform == 'linux'"),
    (rules_calls.of_one_system, MODULE, "from os import fsync as sync\nsync(3)"),
    (rules_calls.of_one_system, MODULE, "import signal\nx = (signal.SIGTERM, signal.SIGHUP)"),
    (rules_calls.skips, TEST, "import pytest\n@pytest.mark.skip\ndef test() -> None: pass"),
    (rules_calls.skips, TEST, "import pytest\n@pytest.mark.skipif(True, reason='')\ndef t(): pass"),
    (rules_calls.skips, TEST, "from pytest import importorskip\nx = importorskip('x')"),
    (rules_calls.skips, TEST, "import pytest\n@pytest.mark.xfail\ndef test() -> None: pass"),
)  # fmt: skip

GOOD = (
    (rules_shape.long_functions, MODULE, _function(70)),
    (rules_shape.long_file, MODULE, "x = 1\n" * 500),
    (rules_shape.long_file, DECLARATIONS, "x = 1\n" * 501),
    (rules_shape.long_lines, MODULE, "x = '" + "y" * 94 + "'"),
    (rules_calls.of_one_system, "src/strongroom/platform/posix.py", "import fcntl"),
    (rules_calls.of_one_system, MODULE, "import os\nos.unlink('x')"),
    (rules_calls.of_one_system, MODULE, "from strongroom.platform import files"),
    (rules_shape.missing_module_docstring, MODULE, '"""Blobs."""'),
    (rules_shape.banned_module_name, "src/strongroom/semantics/lease.py", ""),
    (rules_shape.untyped_functions, MODULE, "class C:\n    def f(self, x: int) -> None: pass"),
    (rules_docs.documented_in_vain, MODULE, _documenting("x, y")),
    (rules_docs.documented_in_vain, MODULE, _documenting("z", "class C(Other)")),
    (rules_calls.clock_or_chance, CLOCK, "import time\nx = time.time()"),
    (rules_calls.clock_or_chance, MODULE, "import asyncio\nx = asyncio.get_running_loop().time()"),
    (rules_calls.clock_or_chance, MODULE, "import time\nx = time.gmtime(0)"),
    (rules_calls.clock_or_chance, MODULE, "import secrets\nx = secrets.compare_digest('a', 'b')"),
    (rules_calls.clock_or_chance, MODULE, "import hmac\nx = hmac.compare_digest('a', 'b')"),
    (rules_calls.clock_or_chance, MODULE, "time = 1\nx = time.time"),
    (rules_calls.environment, "src/strongroom/config.py", "import os\nx = os.environ"),
    (rules_calls.environment, "src/strongroom/cli/serve.py", "import os\nx = os.environ"),
    (rules_calls.skips, TEST, "import pytest\n@pytest.mark.parametrize('x', [1])\ndef t(x): pass"),
)  # fmt: skip

Rule = Callable[[Source], list[str]]


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_rule_bites(rule: Rule, path: str, text: str) -> None:
    assert rule(parse(path, text))


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_rule_lets_pass(rule: Rule, path: str, text: str) -> None:
    assert rule(parse(path, text)) == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (rules_words.unfinished, "x = 1  # TO" + "DO: the rest"),
        (rules_words.unfinished, "FIX" + "ME"),
        (rules_words.unfinished, "XX" + "X"),
        (rules_words.machine_paths, "open('/wo" + "rk/main/x')"),
        (rules_words.machine_paths, "run /ro" + "ot/.venv/bin/python"),
        (rules_words.machine_paths, "see /ho" + "me/ann/notes"),
        (rules_words.registries, "https://py" + "pi.org/simple"),
        (rules_words.registries, "registry.npm" + "js.org"),
    ],
)
def test_text_rule_bites(rule: rules_words.TextRule, text: str) -> None:
    assert rule(PurePosixPath("README.md"), f"first line\n{text}\n") != []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (rules_words.unfinished, "a methodology, XXXL"),
        (rules_words.machine_paths, "https://host/home/page and account/$ro" + "ot/blob"),
        (rules_words.registries, "pip install strongroom"),
    ],
)
def test_text_rule_lets_pass(rule: rules_words.TextRule, text: str) -> None:
    assert rule(PurePosixPath("README.md"), text) == []
