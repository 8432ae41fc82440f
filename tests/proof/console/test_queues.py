"""Queues in the console: as a person uses them, beside a program that uses the same queue."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.storage.queue import (
    AccountSasPermissions,
    QueueClient,
    QueueMessage,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    generate_account_sas,
    generate_queue_sas,
)
from playwright.sync_api import Locator, expect

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import NewConsole, Served

_MARKUP = "<img src=x onerror=alert(1)>&\n'\"]]> \u00fc \U0001f512"


@pytest.fixture
def queue(served: Served) -> Iterator[QueueClient]:
    """A queue with a name of its own, as the program beside the browser sees it."""
    service = QueueServiceClient.from_connection_string(served.server.connection_string)
    with service, service.create_queue(f"q-{uuid4().hex[:12]}") as client:
        yield client


def address(queue: QueueClient) -> str:
    return f"/queues/{DEVELOPMENT_ACCOUNT_NAME}/{queue.queue_name}"


def message(console: Console, text: str) -> Locator:
    return console.page.get_by_role("listitem").filter(has_text=text)


def received(queue: QueueClient) -> QueueMessage:
    """Ask for a message until there is one. The page counts whole seconds, as the server's answer
    does, so it may say up to a second too early that a message is visible again."""
    while (found := queue.receive_message()) is None:
        time.sleep(0.05)
    return found


def field(console: Console, name: str) -> Locator:
    return console.page.get_by_label(name, exact=True)


def test_a_queue_is_made_and_deleted_by_name(console: Console) -> None:
    name = f"made-{uuid4().hex[:12]}"
    console.sign_in("/queues")
    expect(console.heading("Queues")).to_be_visible()
    console.button("New queue").click()
    field(console, "Queue name").fill("No_Name")
    console.button("Create").click()
    expect(console.page.get_by_role("dialog").get_by_role("alert")).to_contain_text(
        "InvalidResourceName"
    )
    field(console, "Queue name").fill(name)
    console.button("Create").click()
    row = console.page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("0")
    row.get_by_role("button", name="Delete").click()
    expect(console.button("Confirm")).to_be_disabled()
    field(console, "Type the name to confirm").fill(name)
    console.button("Confirm").click()
    expect(row).to_have_count(0)


def test_the_list_shows_lengths_as_they_change(console: Console, queue: QueueClient) -> None:
    queue.send_message("one")
    console.sign_in("/queues")
    row = console.page.get_by_role("row").filter(has_text=queue.queue_name)
    expect(row.get_by_role("cell").nth(1)).to_have_text("1")
    queue.send_message("two")
    expect(row.get_by_role("cell").nth(1)).to_have_text("2", timeout=60_000)


def test_a_message_goes_both_ways_unchanged(console: Console, queue: QueueClient) -> None:
    console.sign_in(address(queue))
    field(console, "Message").fill("a\n<b>& 'c' \u00fc")
    console.button("Put").click()
    expect(field(console, "Message")).to_have_value("")
    assert [one.content for one in queue.receive_messages()] == ["a\n<b>& 'c' \u00fc"]
    queue.clear_messages()
    queue.send_message(_MARKUP)
    console.button("Peek").click()
    shown = message(console, "onerror").locator("pre")
    expect(shown).to_be_visible()
    assert shown.evaluate("element => element.textContent") == _MARKUP


def test_peek_leaves_a_message_where_it_is(console: Console, queue: QueueClient) -> None:
    queue.send_message("look")
    console.sign_in(address(queue))
    console.button("Peek").click()
    expect(message(console, "look")).to_contain_text("dequeued 0 times")
    assert next(iter(queue.receive_messages())).dequeue_count == 1


def test_a_gotten_message_counts_down_and_is_deleted(console: Console, queue: QueueClient) -> None:
    queue.send_message("work")
    console.sign_in(address(queue))
    field(console, "Invisible for (s)").fill("300")
    console.button("Get").click()
    countdown = message(console, "work").get_by_role("timer")
    expect(countdown).to_contain_text("Invisible for")
    before = countdown.text_content()
    expect(countdown).not_to_have_text(before or "")
    assert queue.receive_message() is None
    message(console, "work").get_by_role("button", name="Delete", exact=True).click()
    expect(message(console, "work")).to_have_count(0)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_an_update_changes_the_text_and_shows_it_at_once(
    console: Console, queue: QueueClient
) -> None:
    queue.send_message("before")
    console.sign_in(address(queue))
    console.button("Get").click()
    message(console, "before").get_by_role("button", name="Update").click()
    dialog = console.page.get_by_role("dialog")
    dialog.get_by_label("New text").fill("after")
    dialog.get_by_label("Invisible for (s)").fill("0")
    dialog.get_by_role("button", name="Update").click()
    expect(dialog).to_have_count(0)
    received = queue.receive_message()
    assert received is not None
    assert (received.content, received.dequeue_count) == ("after", 2)


def test_a_message_that_another_took_is_refused_in_the_servers_words(
    console: Console, queue: QueueClient
) -> None:
    queue.send_message("raced")
    console.sign_in(address(queue))
    field(console, "Invisible for (s)").fill("1")
    console.button("Get").click()
    expect(message(console, "raced")).to_contain_text("Visible again")
    assert received(queue).content == "raced"
    message(console, "raced").get_by_role("button", name="Delete", exact=True).click()
    expect(console.page.get_by_role("alert").filter(has_text="MessageNotFound")).to_contain_text(
        "request "
    )


def test_base64_is_decoded_beside_the_text(console: Console, queue: QueueClient) -> None:
    queue.send_message(base64.b64encode(b'{"id": 7}').decode())
    console.sign_in(address(queue))
    console.button("Peek").click()
    expect(console.page.get_by_label("Decoded from base64")).to_have_text('{"id": 7}')


def test_clear_asks_for_the_name(console: Console, queue: QueueClient) -> None:
    queue.send_message("gone soon")
    console.sign_in(address(queue))
    console.button("Clear").click()
    field(console, "Type the name to confirm").fill(queue.queue_name or "")
    console.button("Confirm").click()
    expect(console.page.get_by_role("dialog")).to_have_count(0)
    assert queue.receive_message() is None


def test_a_signature_shows_what_it_permits_and_names_what_is_missing(
    new_console: NewConsole, queue: QueueClient, served: Served
) -> None:
    name, expiry = queue.queue_name or "", datetime.now(UTC) + timedelta(hours=1)
    key = (DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
    queue.send_message("by signature")
    sas = generate_queue_sas(key[0], name, key[1], QueueSasPermissions(read=True), expiry)
    console = new_console()
    sign_in_by_sas(console, f"{queue.url}?{sas}", "/queues")
    console.button("Peek").click()
    expect(message(console, "by signature")).to_be_visible()
    for act in ("Get", "Put"):
        expect(console.button(act)).to_be_disabled()
    expect(console.page.get_by_title("Needs the right: process (p).")).to_be_visible()
    console.link("Tables").click()
    expect(console.page.get_by_text("needs a sign-in for the Table service")).to_be_visible()
    resources = ResourceTypes(service=True, container=True, object=True)
    read_only = generate_account_sas(*key, resources, AccountSasPermissions(read=True), expiry)
    other = new_console()
    sign_in_by_sas(other, f"{queue.url.rpartition('/')[0]}?{read_only}", "/queues")
    expect(other.page.get_by_text("needs the right List (l)")).to_be_visible()


def sign_in_by_sas(console: Console, url: str, path: str) -> None:
    console.open(path)
    field(console, "SAS URL").fill(url)
    field(console, "SAS URL").press("Enter")
    console.page.get_by_role("navigation", name="Main").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_a_phone(
    new_console: NewConsole, queue: QueueClient, scheme: str
) -> None:
    queue.send_message("x" * 500)
    console = new_console(color_scheme=scheme, viewport={"width": 360, "height": 740})
    console.sign_in("/queues")
    console.page.get_by_role("link", name=queue.queue_name).wait_for()
    assert console.serious_findings() == []
    console.page.get_by_role("link", name=queue.queue_name).click()
    console.button("Get").click()
    message(console, "xxx").wait_for()
    assert console.serious_findings() == []
    main = "document.querySelector('main')"
    assert console.page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
