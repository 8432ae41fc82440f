"""The rule about kinds of bodies complains wherever a module outside of their package names one."""

from __future__ import annotations

import pytest

from tests.tidy.rules_bodies import BODIES, bodies_taken_apart, kinds_of_bodies
from tests.tidy.sources import Source, package_sources, parse

KIND = parse(f"{BODIES}/stored.py", "class Stored(Body, frozen=True, tag=2):\n    pass")
INSIDE = parse(f"{BODIES}/other.py", "from strongroom.store.blob.bodies.stored import Stored")


def _service(text: str) -> Source:
    return parse("src/strongroom/services/blob/blobs.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "from strongroom.store.blob.bodies.stored import Stored",
        "from strongroom.store.blob.bodies.stored import Stored as Whole",
        "from strongroom.store.blob.bodies import stored\nisinstance(body, stored.Stored)",
        "from strongroom.store.blob import bodies\nisinstance(body, bodies.stored.Stored)",
        "import strongroom.store.blob.bodies.stored as s\nisinstance(body, s.Stored)",
        "import strongroom\nstrongroom.store.blob.bodies.stored.Stored",
    ],
)
def test_a_service_that_names_a_kind_is_found(text: str) -> None:
    assert len(bodies_taken_apart([KIND, INSIDE, _service(text)])) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from strongroom.store.blob.bodies.body import Body",
        "from strongroom.semantics.table.entities import Stored",
        "from strongroom.store.blob.bodies.received import receive\nreceive(call.Stored)",
    ],
)
def test_the_interface_and_other_names_may_be_used(text: str) -> None:
    assert bodies_taken_apart([KIND, INSIDE, _service(text)]) == []


def test_the_rule_sees_all_kinds() -> None:
    wanted = {"Empty", "InRecord", "Inline", "Stored", "Listed", "Appended", "Pages"}
    assert kinds_of_bodies(package_sources()) == wanted
