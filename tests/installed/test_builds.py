"""What `make dist` makes: equal for one commit, with every file of the package and no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from strongroom import __version__
from tests.installed.environments import ROOT, run

_LATER = "1893456000"


def _tracked(*folders: str) -> list[str]:
    """Return the files of these folders that Git knows of, or will once they are added."""
    kinds = ("--cached", "--others", "--exclude-standard")
    return run("git", "ls-files", *kinds, "--", *folders, cwd=ROOT).splitlines()


def _copy(target: Path) -> Path:
    """Copy what a build reads, last file first, with other times and permissions."""
    folders = ("src", "distributions/strongroom.cdx.json")
    for name in reversed([*_tracked(*folders), *_tracked(":(glob)*")]):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, path)
        path.chmod(0o600)
        os.utime(path, (1, 1_600_000_000))
    return target


def _commit_time() -> str:
    return run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def _build(source: Path, target: Path, *flags: str, **variables: str) -> dict[str, bytes]:
    """Build the sdist, and the wheel from it; return both by name."""
    command = (sys.executable, "-m", "build", "--no-isolation", *flags, "--outdir", target, source)
    run(*command, cwd=source, **variables)
    return {path.name: path.read_bytes() for path in target.iterdir()}


def test_a_build_elsewhere_and_later_is_equal_byte_for_byte(built: Path, tmp_path: Path) -> None:
    first = {path.name: path.read_bytes() for path in built.glob(f"strongroom-{__version__}*")}
    source = _copy(tmp_path / "another" / "folder")
    again = _build(source, tmp_path / "dist", SOURCE_DATE_EPOCH=_commit_time(), TZ="Asia/Tokyo")
    assert sorted(first) == sorted(again)
    assert len(first) == 2
    for name, content in first.items():
        assert content == again[name], f"{name} differs"


def test_the_comparison_sees_a_difference(built: Path, wheel: Path, tmp_path: Path) -> None:
    source = _copy(tmp_path / "source")
    again = _build(source, tmp_path / "dist", "--wheel", SOURCE_DATE_EPOCH=_LATER)
    assert wheel.read_bytes() != again[wheel.name]


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert archive.testzip() is None
    package = {name.removeprefix("src/") for name in _tracked("src/strongroom")}
    about = f"strongroom-{__version__}.dist-info"
    others = ("METADATA", "RECORD", "WHEEL", "entry_points.txt")
    more = {"licenses/LICENSE", "sboms/strongroom.cdx.json", *others}
    assert names == package | {f"{about}/{name}" for name in more}
    # Without it, type checkers would not read the package's types.
    assert "strongroom/py.typed" in names


def test_the_sdist_has_the_sources_and_no_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    top = f"strongroom-{__version__}"
    names = {str(PurePosixPath(member.name).relative_to(top)) for member in members}
    about = {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "PKG-INFO"}
    building = {
        "pyproject.toml",
        "hatch_build.py",
        "distributions/strongroom.cdx.json",
        ".gitignore",
    }
    assert names == {*_tracked("src/strongroom"), *about, *building}
    assert {(member.uid, member.gid, member.uname) for member in members} == {(0, 0, "")}


def test_a_wheel_of_the_unpacked_sdist_is_the_same(
    sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    """People without Git build from the sdist, inside folders whose ignore files are not ours."""
    (tmp_path / ".gitignore").write_text("*\n")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / f"strongroom-{__version__}"
    again = _build(source, tmp_path / "dist", "--wheel", SOURCE_DATE_EPOCH=_commit_time())
    assert again == {wheel.name: wheel.read_bytes()}
