"""Which pictures there are, and how a person comes to what each shows.

Lives here: a row for each picture. Must not live here: how pictures are taken (__main__.py), what
is on the server (contents.py, participants.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from playwright.sync_api import expect

from strongroom.testing.server import Server
from tests.interop.console.browsers import Console
from tests.interop.console.pictures import contents, figures
from tests.interop.console.table_windows import cell, edit


class Picture(NamedTuple):
    """One picture.

    Attributes:
        name: of its files.
        view: the link of the navigation; without it there is no such view, and no picture.
        show: brings the window, which is signed in, to what is shown.
    """

    name: str
    view: str
    show: Callable[[Console, Server], None]


def _overview(console: Console, server: Server) -> None:
    figures.lively(console.page)
    console.sign_in("/overview")
    console.page.get_by_role("figure").filter(has_text="Memory").wait_for()


def _blobs(console: Console, server: Server) -> None:
    _go(console, f"/blobs/{contents.ACCOUNT}/{contents.CONTAINER}")
    console.page.get_by_role("link", name="readme.txt", exact=True).wait_for()


def _blob(console: Console, server: Server) -> None:
    _go(console, f"/blobs/{contents.ACCOUNT}/{contents.CONTAINER}/{contents.BLOB}")
    console.page.get_by_role("cell", name="Shelf, oak").wait_for()


def _compare(console: Console, server: Server) -> None:
    address = f"/blobs/{contents.ACCOUNT}/{contents.CONTAINER}/{contents.BLOB}?tab=versions"
    _go(console, address)
    console.page.get_by_role("button", name="Compare").first.click()
    dialog = console.page.get_by_role("dialog")
    dialog.get_by_role("table", name="The text, line by line").wait_for()


def _conflict(console: Console, server: Server) -> None:
    contents.restore_order(server)
    _go(console, f"/tables/{contents.ACCOUNT}/{contents.TABLE}")
    cell(console, "packed").wait_for()
    contents.change_order(server)
    edit(console, "packed", "cancelled")
    console.page.get_by_role("dialog", name="Conflict").wait_for()


def _refused(console: Console, server: Server) -> None:
    contents.ask(server)
    console.link("Requests").click()
    table = console.page.get_by_role("table", name="Requests", exact=True)
    table.get_by_role("row").filter(has_text=contents.REFUSED).first.click()
    console.page.get_by_role("heading", name="Replay").wait_for()


def _coordination(console: Console, server: Server) -> None:
    console.link("Coordination").click()
    gate = console.page.get_by_role("listitem").filter(has_text="go-live").first
    expect(gate.get_by_text("3 wait")).to_be_visible()
    expect(console.page.get_by_text("batch-2:901").first).to_be_visible()


def _files(console: Console, server: Server) -> None:
    _go(console, f"/files/{contents.ACCOUNT}/{contents.SHARE}")
    console.page.get_by_role("link", name="notes.txt").wait_for()


def _access(console: Console, server: Server) -> None:
    console.link("Access").click()
    page = console.page
    page.get_by_label("SAS", exact=True).fill(contents.link_to_blob(server))
    page.get_by_role("button", name="Explain", exact=True).click()
    page.get_by_text("signature right").wait_for()
    page.get_by_label("SAS", exact=True).evaluate("field => field.scrollIntoView()")


PICTURES: Final = (
    Picture("overview", "Overview", _overview),
    Picture("blobs", "Blobs", _blobs),
    Picture("blob", "Blobs", _blob),
    Picture("compare", "Blobs", _compare),
    Picture("conflict", "Tables", _conflict),
    Picture("refused", "Requests", _refused),
    Picture("coordination", "Coordination", _coordination),
    Picture("files", "Files", _files),
    Picture("access", "Access", _access),
)


def _go(console: Console, address: str) -> None:
    """Follow an address of the page without loading it anew, which would end the sign-in."""
    console.page.evaluate(
        """(address) => {
          const link = document.createElement("a");
          link.href = address;
          document.body.append(link);
          link.click();
          link.remove();
        }""",
        address,
    )
