"""Each dependency has a lowest version, an upper bound has a reason, and the SBOM is up to date."""

from __future__ import annotations

import json

import pytest
from packaging.requirements import Requirement

from tests.tidy import console_build, dependencies, sbom
from tests.tidy.sources import ROOT

_PYPROJECT = """
[project]
dependencies = [
    "first>=1.2", # which it needs
    "second<3,>=1", # from 3 on it is slow
    {line}
]

[project.optional-dependencies]
extra = ["third[more]>=2"]
dev = ["anything"]
"""


def _declared() -> str:
    return dependencies.PYPROJECT.read_text(encoding="utf-8")


def test_every_dependency_says_its_lowest_version() -> None:
    found = dependencies.every(_declared())
    assert "apsw" in {one.name for one in found}
    assert dependencies.without_lower_bound(found) == []


def test_every_upper_bound_has_a_reason() -> None:
    assert dependencies.bounds_without_reason(_declared()) == []


def test_the_bill_of_materials_is_up_to_date() -> None:
    written = sbom.FILE.read_text(encoding="utf-8")
    assert written == sbom.text(), "run: python -m tests.tidy.sbom"


def test_extras_count_and_tools_of_development_do_not() -> None:
    found = dependencies.declared(_PYPROJECT.format(line=""))
    assert {extra: [one.name for one in ones] for extra, ones in found.items()} == {
        "": ["first", "second"],
        "extra": ["third"],
    }
    assert dependencies.without_lower_bound(dependencies.every(_PYPROJECT.format(line=""))) == []


def test_a_dependency_without_a_lowest_version_is_found() -> None:
    found = dependencies.every(_PYPROJECT.format(line='"fourth", # needed'))
    assert dependencies.without_lower_bound(found) == ["fourth says no lowest version"]


@pytest.mark.parametrize("specifier", ["<2", "<=2", "==1.5", "~=1.5"])
def test_an_upper_bound_without_a_reason_is_found(specifier: str) -> None:
    text = _PYPROJECT.format(line=f'"fourth{specifier}",')
    assert dependencies.bounds_without_reason(text) == [
        f"fourth{specifier} has an upper bound without a reason"
    ]


@pytest.mark.parametrize("text", ["some", "some>=1,>=2", "some<2"])
def test_a_lowest_version_is_one(text: str) -> None:
    with pytest.raises(ValueError, match="lower bounds, and not one"):
        dependencies.lowest(Requirement(text))


def test_names_are_compared_in_their_canonical_form() -> None:
    assert sbom.pinned("PyJWT==2.1\nprometheus_client==0.2\n") == {
        "pyjwt": "2.1",
        "prometheus-client": "0.2",
    }


def test_what_it_needs_is_pinned() -> None:
    pins = sbom.pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    needed = {
        one["name"]: one["version"]
        for one in sbom.document()["components"]
        if one["purl"].startswith("pkg:pypi/")
    }
    assert needed.items() <= pins.items()
    # What cryptography needs, as an example of the second level.
    assert "cffi" in needed


def test_the_scripts_that_the_wheel_ships_have_versions_and_licences() -> None:
    document = sbom.document()
    found = {
        one["name"]: one for one in document["components"] if one["purl"].startswith("pkg:npm/")
    }
    assert {"preact", "@preact/signals", "uplot"} <= found.keys()
    assert "vite" not in found  # it builds, and is in nothing that is shipped
    locked = json.loads(console_build.LOCK.read_text(encoding="utf-8"))["packages"]
    notices = (console_build.BUILT / console_build.LICENCES).read_text(encoding="utf-8")
    edges = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    itself = edges[document["metadata"]["component"]["bom-ref"]]
    for name, one in found.items():
        package = locked[f"node_modules/{name}"]
        assert (one["version"], one["licenses"]) == (
            package["version"],
            [{"expression": package["license"]}],
        )
        assert f"{name} {one['version']} ({package['license']})" in notices
        assert one["bom-ref"] in itself
    signals = found["@preact/signals"]["purl"]
    assert signals.startswith("pkg:npm/%40preact/signals@")
    assert edges[signals] == sorted(
        found[name]["purl"] for name in ("preact", "@preact/signals-core")
    )
