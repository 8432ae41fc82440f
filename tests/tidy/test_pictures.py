"""Every picture that a page shows is there, and none is unused."""

from __future__ import annotations

from pathlib import PurePosixPath

from tests.tidy.rules_pictures import complaints
from tests.tidy.sources import pictures, text_files

_ONE = PurePosixPath("docs/pictures/a-light.webp")
_OTHER = PurePosixPath("docs/pictures/a-dark.webp")
_PAGE = PurePosixPath("docs/a.md")
_BOTH = (
    '<picture>\n<source media="(prefers-color-scheme: dark)" srcset="pictures/a-dark.webp">\n'
    '<img src="pictures/a-light.webp" alt="a">\n</picture>\n'
)


def test_pages_show_the_pictures_that_are_there() -> None:
    pages = {path: text for path, text in text_files().items() if path.suffix == ".md"}
    assert complaints(pages, pictures()) == []


def test_the_rule_sees_the_pictures() -> None:
    assert PurePosixPath("docs/pictures/console/overview-light.webp") in pictures()


def test_a_picture_in_light_and_dark_is_fine() -> None:
    assert complaints({_PAGE: _BOTH}, {_ONE, _OTHER}) == []
    readme = {PurePosixPath("README.md"): "![a](docs/pictures/a-light.webp)", _PAGE: _BOTH}
    assert complaints(readme, {_ONE, _OTHER}) == []


def test_a_missing_and_an_unused_picture_are_found() -> None:
    assert complaints({_PAGE: _BOTH}, {_ONE}) == [
        "docs/a.md: there is no picture docs/pictures/a-dark.webp",
        "docs/pictures/a-light.webp: there is no a-dark.webp",
    ]
    readme = {PurePosixPath("README.md"): "![a](docs/pictures/a-light.webp)"}
    assert complaints(readme, {_ONE, _OTHER}) == ["docs/pictures/a-dark.webp: no page shows it"]
