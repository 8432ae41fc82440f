"""`distributions/strongroom.cdx.json`: the software bill of materials that the wheel carries.

Lives here: the generation of the file. Must not live here: the list of dependencies
(pyproject.toml) and their versions (constraints.txt). Sources: PEP 770, and CycloneDX 1.6.

    python -m tests.tidy.sbom     writes the file anew

The wheel contains nothing of others but the JavaScript of the console's page. So the components are
these packages, as console/package-lock.json locks them, and what the wheel needs: each dependency,
and what that one needs, on Linux. A component's version is the one that the release is tested with.
What only an extra needs has the scope "optional".
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from strongroom import __version__
from tests.tidy import console_build, dependencies
from tests.tidy.console_build import ShippedPackage
from tests.tidy.sources import ROOT

FILE = ROOT / "distributions" / "strongroom.cdx.json"
NAME = "strongroom"

# One environment, whoever writes the file: the oldest Python.
_ENVIRONMENT = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
_LICENSE_CHARACTERS_MAX = 60

Needs = dict[str, frozenset[str]]
"""Of each package, what it needs itself; names are canonical."""


def document() -> dict[str, Any]:
    """Return the bill as CycloneDX 1.6. Raises PackageNotFoundError where one is not installed."""
    pyproject = dependencies.PYPROJECT.read_text(encoding="utf-8")
    with_extras = dependencies.every(pyproject)
    needed, wished = _closure(dependencies.declared(pyproject)[""]), _closure(with_extras)
    versions = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    ranges: dict[str, str] = {
        canonicalize_name(one.name): str(one.specifier) for one in with_extras
    }
    needs = {**wished, **needed}
    shipped = console_build.shipped()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": _itself(tomllib.loads(pyproject)["project"]),
            "lifecycles": [{"phase": "build"}],
        },
        "components": [
            *(
                _component(name, versions[name], name in needed, ranges.get(name))
                for name in sorted(needs)
            ),
            *map(_script, shipped),
        ],
        "dependencies": [
            _of_itself(ranges, versions, shipped),
            *(
                _edges(_reference(name, versions[name]), needs[name], versions)
                for name in sorted(needs)
            ),
            *(_within(one, shipped) for one in shipped),
        ],
    }


def pinned(constraints: str) -> dict[str, str]:
    """Return the version of each package in a file of `name==version` lines."""
    lines = (line.split("==") for line in constraints.splitlines() if "==" in line)
    return {canonicalize_name(name): version.strip() for name, version in lines}


def _itself(project: Mapping[str, Any]) -> dict[str, Any]:
    author = project["authors"][0]["name"]
    return {
        "type": "application",
        "bom-ref": _reference(NAME, __version__),
        "supplier": {"name": author},
        "name": NAME,
        "version": __version__,
        "description": project["description"],
        "licenses": [{"expression": project["license"]}],
        "purl": _reference(NAME, __version__),
    }


def _component(name: str, version: str, is_required: bool, wanted: str | None) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _reference(name, version),
        "name": name,
        "version": version,
        "scope": "required" if is_required else "optional",
        "purl": _reference(name, version),
    }
    if licenses := _licenses(name):
        component["licenses"] = licenses
    if wanted:
        component["properties"] = [{"name": "strongroom:versions", "value": wanted}]
    return component


def _script(package: ShippedPackage) -> dict[str, Any]:
    """Return a package whose JavaScript is in the built page."""
    reference = _script_reference(package)
    return {
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
        "scope": "required",
        "hashes": [{"alg": "SHA-512", "content": package.sha512}],
        "licenses": [{"expression": package.licence}],
        "purl": reference,
    }


def _licenses(name: str) -> list[dict[str, Any]]:
    fields = metadata.metadata(name)
    for expression in fields.get_all("License-Expression") or []:
        return [{"expression": expression}]
    text = "".join(fields.get_all("License") or [])
    if text and "\n" not in text and len(text) <= _LICENSE_CHARACTERS_MAX:
        return [{"license": {"name": text}}]
    classified = [
        one.rpartition(" :: ")[2]
        for one in fields.get_all("Classifier") or []
        if one.startswith("License :: ")
    ]
    return [{"license": {"name": one}} for one in sorted(classified)]


def _of_itself(
    needed: Iterable[str], versions: Mapping[str, str], shipped: Sequence[ShippedPackage]
) -> dict[str, Any]:
    edges = _edges(_reference(NAME, __version__), needed, versions)
    scripts = [_script_reference(one) for one in shipped]
    return {**edges, "dependsOn": sorted([*edges["dependsOn"], *scripts])}


def _within(package: ShippedPackage, shipped: Sequence[ShippedPackage]) -> dict[str, Any]:
    needed = [_script_reference(one) for one in shipped if one.name in package.needs]
    return {"ref": _script_reference(package), "dependsOn": sorted(needed)}


def _edges(reference: str, needed: Iterable[str], versions: Mapping[str, str]) -> dict[str, Any]:
    return {"ref": reference, "dependsOn": sorted(_reference(one, versions[one]) for one in needed)}


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _script_reference(package: ShippedPackage) -> str:
    return f"pkg:npm/{package.name.replace('@', '%40')}@{package.version}"


def _closure(requirements: Iterable[Requirement]) -> Needs:
    """Return the packages, what they need, and so on."""
    found: Needs = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(requirements)
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if (name, frozenset(one.extras)) in seen:
            continue
        seen.add((name, frozenset(one.extras)))
        inner = list(_needed_by(name, one.extras))
        found[name] = found.get(name, frozenset()) | {
            canonicalize_name(each.name) for each in inner
        }
        waiting += inner
    return found


def _needed_by(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    for text in metadata.requires(name) or []:
        one = Requirement(text)
        if one.marker is None or any(
            one.marker.evaluate({**_ENVIRONMENT, "extra": extra}) for extra in ("", *extras)
        ):
            yield one


def text() -> str:
    """Return the file's text."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Write the file."""
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
