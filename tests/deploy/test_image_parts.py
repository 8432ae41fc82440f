"""The parts of which an image is built: layers, the list of packages, the archive, its bill."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from deploy.image import lock, wheels
from deploy.image.archive import Settings, archive
from deploy.image.build import contents
from deploy.image.elf import needed
from deploy.image.lock import LockError, Package
from deploy.image.root_file_system import own_layer
from deploy.image.sbom import sbom
from deploy.image.tree import File, Folder, Link, Tree, read_tar
from tests.tidy.sources import ROOT

_SETTINGS = Settings(
    architecture="amd64",
    seconds=1_000_000_000,
    names=("strongroom:1.2.3", "strongroom:latest"),
    entrypoint=("/entry",),
    command=("azurite",),
    healthcheck=("/healthy",),
    ports=(10000, 10001),
    environment={"LANG": "C.UTF-8"},
    labels={"a": "b"},
)


def _tree(*paths: str) -> Tree:
    tree = Tree()
    for path in paths:
        tree.add(path, File(path.encode()))
    return tree


def test_a_layer_does_not_depend_on_the_order_in_which_files_were_added() -> None:
    one, other = _tree("usr/b", "usr/a", "etc/c"), _tree("etc/c", "usr/a", "usr/b")
    assert one.tar(7) == other.tar(7)
    assert one.tar(7) != one.tar(8)


def test_a_layer_has_each_folder_before_its_files_and_belongs_to_root() -> None:
    tree = _tree("usr/share/doc/x")
    tree.add("data", Folder(0o770, 10001, 0))
    with tarfile.open(fileobj=io.BytesIO(tree.tar(7))) as packed:
        members = {one.name: one for one in packed}
    assert [*members] == ["data", "usr", "usr/share", "usr/share/doc", "usr/share/doc/x"]
    assert (members["data"].uid, members["data"].gid, members["data"].mode) == (10001, 0, 0o770)
    assert {one.uid for name, one in members.items() if name != "data"} == {0}
    assert {one.mtime for one in members.values()} == {7}


def test_what_debian_keeps_behind_links_is_placed_behind_them() -> None:
    tree = _tree("lib/x86_64-linux-gnu/libc.so.6", "bin/sh")
    assert [*tree.entries] == ["usr/lib/x86_64-linux-gnu/libc.so.6", "usr/bin/sh"]
    tree.add("bin", Link("usr/bin"))
    assert tree.entries["bin"] == Link("usr/bin")


@pytest.mark.parametrize("path", ["../etc/passwd", "/etc/passwd", "usr/../../x", ""])
def test_no_file_leaves_its_layer(path: str) -> None:
    with pytest.raises(ValueError, match="inside of a layer"):
        Tree().add(path, File(b""))


def test_a_tar_archive_is_read_as_it_was_written() -> None:
    tree = _tree("usr/bin/a")
    tree.add("usr/bin/run", File(b"#!", 0o755))
    tree.add("usr/bin/link", Link("run"))
    assert read_tar(tree.tar(7)).entries.items() >= tree.entries.items()


def test_a_link_is_followed_to_its_file() -> None:
    tree = _tree("usr/share/x")
    tree.add("etc/relative", Link("../usr/share/x"))
    tree.add("etc/absolute", Link("/etc/relative"))
    assert tree.file("etc/absolute") == b"usr/share/x"


def test_what_is_left_out_is_left_out() -> None:
    tree = _tree("usr/share/doc/a/copyright", "usr/share/doc/a/changelog.gz")
    tree.leave_out(["usr/share/doc/*/*.gz"])
    assert [*tree.entries] == ["usr/share/doc/a/copyright"]


def test_the_list_of_packages_is_read_as_it_was_written() -> None:
    packages = (Package("deb", "libc6", "2.41-12", "a" * 64), Package("wheel", "x", "1", "b" * 64))
    found = lock.parse(lock.text_of("2026-11-28", packages[::-1]), "amd64.txt")
    assert found.packages == packages
    assert found.seconds == 1795824000


@pytest.mark.parametrize(
    "text", ["deb libc6 2.41", "date 2026-11-28\ndeb libc6 1 abc", "rpm x 1 " + "a" * 64, ""]
)
def test_a_broken_list_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(LockError, match=r"amd64\.txt"):
        lock.parse(text, "amd64.txt")


def test_each_architecture_has_the_chosen_packages_and_the_tested_versions() -> None:
    tested = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {wheels.normal_name(name): version for name, _, version in map(_split, tested)}
    for architecture in lock.ARCHITECTURES:
        found = lock.read(architecture)
        assert {one.name for one in found.of("deb")} == set(contents().debian)
        versions = {one.name: one.version for one in found.of("wheel")}
        assert versions == {name: pinned[name] for name in versions}
        assert versions.keys() >= {"apsw", "cryptography", "httptools", "msgspec", "typer"}
        assert versions.keys() >= {"psycopg", "psycopg-binary"}, "it serves --store as well"


def _split(line: str) -> tuple[str, str, str]:
    return line.partition("==")


def test_an_image_is_the_same_each_time_and_holds_what_its_digests_say() -> None:
    layers = [_tree("usr/a").tar(7), _tree("usr/b").tar(7)]
    made = archive(layers, _SETTINGS)
    assert archive(layers, _SETTINGS).data == made.data
    with tarfile.open(fileobj=io.BytesIO(made.data)) as packed:
        blobs = {one.name: _read(packed, one) for one in packed}
    for name, data in blobs.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"
    [listed] = json.loads(blobs["manifest.json"])
    assert listed["RepoTags"] == ["strongroom:1.2.3", "strongroom:latest"]
    config = json.loads(blobs[listed["Config"]])
    assert config["rootfs"]["diff_ids"] == [*made.layers]
    assert config["config"]["Healthcheck"]["Test"] == ["CMD", "/healthy"]
    assert config["config"]["Cmd"] == ["azurite"]
    assert config["config"]["Volumes"] == {"/data": {}}
    assert "User" not in config["config"], "root must be able to read a key of mode 0600"
    manifests = json.loads(blobs["index.json"])["manifests"]
    names = [one["annotations"]["org.opencontainers.image.ref.name"] for one in manifests]
    assert names == listed["RepoTags"]
    [digest] = {one["digest"] for one in manifests}
    assert f"blobs/sha256/{digest[7:]}" in blobs


def _read(packed: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = packed.extractfile(member)
    assert content is not None
    return content.read()


def _wheel(name: str, scripts: str = "") -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as packed:
        packed.writestr(f"{name}/__init__.py", "")
        packed.writestr(
            f"{name}-1.0.dist-info/METADATA",
            f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\nLicense-Expression: MIT\n",
        )
        packed.writestr(f"{name}-1.0.dist-info/entry_points.txt", scripts)
        packed.writestr(f"{name}-1.0.data/scripts/{name}.sh", "")
    return found.getvalue()


def test_a_command_of_ours_goes_through_the_entry_point_and_one_of_others_is_left_out() -> None:
    layer = own_layer([_wheel("strong", "[console_scripts]\nstrong = strong.cli:main\n")], b"{}")
    assert layer.entries["usr/bin/strong"] == Link("/usr/lib/strongroom/entrypoint.py")
    command = layer.entries["usr/lib/strongroom/bin/strong"]
    assert isinstance(command, File) and command.mode == 0o755
    assert b"from strong.cli import main" in command.data
    assert not [path for path in layer.entries if path.endswith("strong.sh")]


def test_the_bill_names_each_package_by_its_url() -> None:
    listed = lock.parse(
        lock.text_of(
            "2026-11-28",
            [Package("deb", "zlib1g", "1:1.3", "a" * 64), Package("wheel", "x", "1.0", "b" * 64)],
        ),
        "amd64.txt",
    )
    own = wheels.read(_wheel("strong"))
    found = json.loads(
        sbom(listed, contents(), "amd64", [(own, "c" * 64)], [wheels.read(_wheel("x"))])
    )
    urls = {part["purl"]: part for part in found["components"]}
    assert [*urls] == [
        "pkg:deb/debian/zlib1g@1%3A1.3?arch=amd64&distro=debian-13",
        "pkg:pypi/x@1.0",
        "pkg:pypi/strong@1.0",
    ]
    assert urls["pkg:pypi/x@1.0"]["licenses"] == [{"license": {"name": "MIT"}}]
    assert urls["pkg:pypi/x@1.0"]["hashes"] == [{"alg": "SHA-256", "content": "b" * 64}]


def test_the_libraries_that_a_program_needs_are_read_from_it() -> None:
    program = Path(sys.executable).resolve().read_bytes()
    assert [name for name in needed(program) if name.startswith("libc.so")]
