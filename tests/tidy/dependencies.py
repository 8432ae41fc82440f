"""The bounds of the dependencies in pyproject.toml, and the lowest version of each.

Lives here: the reading of the bounds, and the rule about them. Must not live here: why a bound is
what it is; a comment in pyproject.toml says so.

    python -m tests.tidy.dependencies     prints what `make lowest` installs
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable

from packaging.requirements import Requirement

from tests.tidy.sources import ROOT

PYPROJECT = ROOT / "pyproject.toml"

# A requirement on a line of its own, and the comment that follows it.
_LINE = re.compile(r'^\s*"(?P<requirement>[^"]+)",?\s*(?:#\s*(?P<comment>.*))?$')
# These may stop a newer version from being installed.
_UPPER = frozenset({"<", "<=", "==", "===", "~="})


def declared(pyproject: str) -> dict[str, list[Requirement]]:
    """Return what users install: the dependencies under "", and those of each extra but `dev`."""
    project = tomllib.loads(pyproject)["project"]
    extras = {"": project["dependencies"], **project.get("optional-dependencies", {})}
    extras.pop("dev", None)
    return {extra: [Requirement(one) for one in ones] for extra, ones in extras.items()}


def every(pyproject: str) -> list[Requirement]:
    """Return the same in one list."""
    return [one for ones in declared(pyproject).values() for one in ones]


def lowest(requirement: Requirement) -> str:
    """Return the version after `>=`; raises ValueError if there is not exactly one."""
    bounds = [one.version for one in requirement.specifier if one.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"{requirement} has {len(bounds)} lower bounds, and not one")
    return bounds[0]


def without_lower_bound(requirements: Iterable[Requirement]) -> list[str]:
    """Return a complaint for each requirement that does not name its lowest version."""
    return [
        f"{one} says no lowest version"
        for one in requirements
        if not any(each.operator == ">=" for each in one.specifier)
    ]


def bounds_without_reason(pyproject: str) -> list[str]:
    """Return a complaint for each upper bound whose line has no comment."""
    found = (_LINE.match(line) for line in pyproject.splitlines())
    lines = [(one["requirement"], one["comment"]) for one in found if one is not None]
    bounded = {str(one) for one in every(pyproject) if _operators(one) & _UPPER}
    explained = {str(Requirement(text)) for text, comment in lines if comment}
    return [f"{one} has an upper bound without a reason" for one in sorted(bounded - explained)]


def _operators(requirement: Requirement) -> set[str]:
    return {one.operator for one in requirement.specifier}


def main() -> None:
    """Print each dependency with its lowest version, as pip takes them."""
    for one in every(PYPROJECT.read_text(encoding="utf-8")):
        extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
        print(f"{one.name}{extras}=={lowest(one)}")


if __name__ == "__main__":
    main()
