"""What the distributions say about themselves: licence, addresses, needs, and their SBOM."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from strongroom import __version__
from tests.installed.environments import ROOT, outside, run
from tests.tidy import dependencies, sbom

ABOUT = f"strongroom-{__version__}.dist-info"
REPOSITORY = "https://code.example/storage/strongroom"


def _read(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"{ABOUT}/{name}").decode()


def _metadata(wheel: Path) -> Message:
    return HeaderParser().parsestr(_read(wheel, "METADATA"))


def _addresses(wheel: Path) -> dict[str, str]:
    entries = (text.partition(", ") for text in _metadata(wheel).get_all("Project-URL", []))
    return {label: address for label, _, address in entries}


def test_it_says_what_it_is(wheel: Path) -> None:
    about = _metadata(wheel)
    assert (about["Name"], about["Version"]) == ("strongroom", __version__)
    assert (
        about["Summary"]
        == "A strongly consistent storage server that speaks the Azure Storage protocol"
    )
    assert about["Author"]
    assert about["Keywords"]
    assert about["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in about.get_all("Classifier", [])
    assert about["Description-Content-Type"] == "text/markdown"
    assert about.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_licence_is_an_expression_with_its_text(wheel: Path) -> None:
    about = _metadata(wheel)
    assert about["Metadata-Version"] == "2.4"
    assert about["License-Expression"] == "Apache-2.0"
    assert about.get_all("License-File") == ["LICENSE"]
    assert _read(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_without_an_address_it_names_none(wheel: Path) -> None:
    """An address that somebody made up would be worse than none."""
    assert _addresses(wheel) == {}


def test_a_release_names_its_repository(tmp_path: Path) -> None:
    run(
        "make",
        "dist",
        f"DIST={tmp_path}",
        f"VENV={sys.prefix}",
        f"REPOSITORY={REPOSITORY}",
        cwd=ROOT,
    )
    wheel = tmp_path / f"strongroom-{__version__}-py3-none-any.whl"
    found = _addresses(wheel)
    assert {"Homepage", "Source", "Issues", "Changelog", "Documentation"} <= set(found)
    assert found["Source"] == REPOSITORY
    base = f"{REPOSITORY}/blob/v{__version__}/"
    links = re.findall(r"\]\(([^)]+)\)", str(_metadata(wheel).get_payload()))
    named = [found["Changelog"], found["Documentation"], *links]
    # A page that shows the description resolves no link by itself.
    # A picture is shown by its bytes, not by a page about it.
    raw = f"{REPOSITORY}/raw/v{__version__}/"
    assert [link for link in named if not link.startswith((base, raw))] == []
    assert [link for link in named if link.endswith(".webp") != link.startswith(raw)] == []
    paths = [link.removeprefix(base).removeprefix(raw) for link in named]
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    assert len(links) > 10


def test_a_wheel_of_an_sdist_names_the_repository_of_the_sdist(tmp_path: Path) -> None:
    flags = (sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path)
    run(*flags, "--sdist", ROOT, cwd=ROOT, STRONGROOM_REPOSITORY=REPOSITORY)
    with tarfile.open(tmp_path / f"strongroom-{__version__}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    run(*flags, "--wheel", tmp_path / f"strongroom-{__version__}", cwd=tmp_path)
    wheel = tmp_path / f"strongroom-{__version__}-py3-none-any.whl"
    assert _addresses(wheel)["Source"] == REPOSITORY


@pytest.mark.parametrize(
    "address", ["strongroom", "http://code.example/s", "https://a.example/?q=1"]
)
def test_an_impossible_address_is_refused(tmp_path: Path, address: str) -> None:
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        tmp_path,
        ROOT,
    ]
    done = subprocess.run(
        list(map(str, command)),
        env=outside(STRONGROOM_REPOSITORY=address),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "STRONGROOM_REPOSITORY must be an https address" in done.stdout + done.stderr


def test_it_needs_what_is_declared(wheel: Path) -> None:
    needed = [Requirement(text) for text in _metadata(wheel).get_all("Requires-Dist", [])]
    declared = dependencies.declared(dependencies.PYPROJECT.read_text(encoding="utf-8"))
    assert {one for one in needed if one.marker is None} == set(declared[""])
    for extra, ones in declared.items():
        given = {one.name for one in needed if f'extra == "{extra}"' in str(one.marker)}
        assert not extra or given == {one.name for one in ones}


def test_the_bill_of_materials_lists_what_it_needs(wheel: Path) -> None:
    bill = json.loads(_read(wheel, "sboms/strongroom.cdx.json"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == __version__
    assert bill == sbom.document()
    by_name = {one["name"]: one for one in bill["components"]}
    needed = [Requirement(text) for text in _metadata(wheel).get_all("Requires-Dist", [])]
    assert {one.name for one in needed if one.marker is None} <= {
        name for name, one in by_name.items() if one["scope"] == "required"
    }
    references = {one["bom-ref"] for one in (bill["metadata"]["component"], *bill["components"])}
    assert {one["ref"] for one in bill["dependencies"]} == references
    assert {each for one in bill["dependencies"] for each in one["dependsOn"]} <= references
