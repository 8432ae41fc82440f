"""Pictures: each that a page shows is there, in light and dark, and each that is there is shown.

Lives here: the rule, over the texts of pages by their paths. Must not live here: the list of pages
and pictures (sources.py), how pictures are taken (tests/interop/console/pictures/).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

_SHOWN = re.compile(r"""(?:\bsrc(?:set)?="|!\[[^\]]*\]\()([^"\s)]+\.(?:gif|png|webp))["\s)]""")
_LIGHT, _DARK = "-light.", "-dark."


def complaints(
    pages: Mapping[PurePosixPath, str], pictures: Collection[PurePosixPath]
) -> list[str]:
    """Return what is wrong, one line each."""
    found, used = [], set()
    for page, text in pages.items():
        shown = [_path(page, target) for target in _SHOWN.findall(text)]
        used.update(shown)
        found += [f"{page}: there is no picture {one}" for one in shown if one not in pictures]
    found += [f"{one}: no page shows it" for one in sorted(set(pictures) - used)]
    for one in sorted(pictures):
        other = PurePosixPath(str(one).replace(_LIGHT, _DARK))
        if other not in pictures:
            found.append(f"{one}: there is no {other.name}")
    return found


def _path(page: PurePosixPath, target: str) -> PurePosixPath:
    return PurePosixPath(posixpath.normpath(posixpath.join(page.parent, target)))
