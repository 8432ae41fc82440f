"""The view Access as people use it: accounts, roles, a signature explained, stored policies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import AccessPolicy as BlobPolicy
from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.queue import AccessPolicy as QueuePolicy
from azure.storage.queue import QueueServiceClient
from playwright.sync_api import Locator, expect

from tests.interop.console.browsers import Console, schemes
from tests.interop.console.conftest import KEY, NewConsole, Served
from tests.interop.console.keys import press_until

CONTAINER, QUEUE, BLOB = "access-photos", "access-jobs", "a b/<i>c</i>.jpg"
_PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module", autouse=True)
def _places(served: Served) -> None:
    """A container and a queue with a stored policy each."""
    connection = served.server.connection_string
    expiry = datetime.now(UTC) + timedelta(days=1)
    with BlobServiceClient.from_connection_string(connection) as blobs:
        container = blobs.get_container_client(CONTAINER)
        container.create_container()
        rule = BlobPolicy(permission=ContainerSasPermissions(read=True, list=True), expiry=expiry)
        container.set_container_access_policy({"readers": rule})
    with QueueServiceClient.from_connection_string(connection) as queues:
        queue = queues.get_queue_client(QUEUE)
        queue.create_queue()
        queue.set_queue_access_policy({"workers": QueuePolicy(permission="p", expiry=expiry)})


def blob_url(served: Served, hours: int = 1, key: str = KEY.key) -> str:
    """The URL of a blob with a signature that ends after so many hours, or ended."""
    token = generate_blob_sas(
        KEY.account,
        CONTAINER,
        BLOB,
        account_key=key,
        permission=BlobSasPermissions(read=True, delete=True),
        expiry=datetime.now(UTC) + timedelta(hours=hours),
        ip="10.0.0.1",
    )
    name = BLOB.replace(" ", "%20").replace("<", "%3C").replace(">", "%3E")
    return f"{served.server.url}/{KEY.account}/{CONTAINER}/{name}?{token}"


def explain(console: Console, text: str) -> Locator:
    """Paste a signature, and return the region that explains it."""
    console.page.get_by_label("SAS", exact=True).fill(text)
    console.button("Explain").click()
    region = console.page.get_by_role("region", name="Explanation", exact=True)
    expect(region).to_be_visible()
    return region


def test_accounts_are_shown_with_the_command_that_changes_their_keys(
    new_console: NewConsole,
) -> None:
    console = new_console(permissions=["clipboard-read", "clipboard-write"])
    console.sign_in()
    console.link("Access").click()
    expect(console.heading("Access")).to_be_focused()
    account = console.page.get_by_role("listitem").filter(has_text=KEY.account)
    expect(account).to_contain_text("1 key")
    expect(account).to_contain_text("known key")
    account.get_by_role("button", name="Copy command").click()
    copied = console.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("strongroom account add NAME --data /")
    expect(console.page.get_by_text("accepts no bearer tokens")).to_be_visible()


def test_a_right_signature_is_explained_field_by_field(console: Console, served: Served) -> None:
    console.sign_in("/access")
    url = blob_url(served)
    region = explain(console, url)
    expect(region).to_be_focused()
    expect(region).to_contain_text("Service SAS")
    expect(region).to_contain_text("signature right, by key 1")
    expect(region).to_contain_text("valid now")
    expect(region).to_contain_text(f"The blob {BLOB} in {CONTAINER}.")
    expect(region).to_contain_text("read contents")
    expect(region).to_contain_text("10.0.0.1")
    fields = region.get_by_role("table", name="Fields")
    for name, shown in (("sip", "10.0.0.1"), ("sig", "(masked)")):
        head = console.page.get_by_role("rowheader", name=name, exact=True)
        expect(fields.get_by_role("row").filter(has=head)).to_contain_text(shown)
    signature = url.rpartition("sig=")[2].partition("&")[0]
    assert signature not in console.page.url
    asked = [one for one in console.sent if "access/explain" in one.url]
    assert [one.method for one in asked] == ["POST"]
    assert all("sig=" not in one.url for one in console.sent)


def test_a_wrong_or_expired_signature_says_so(console: Console, served: Served) -> None:
    console.sign_in("/access")
    region = explain(console, blob_url(served, key=f"AAAA{KEY.key[4:]}"))
    expect(region).to_contain_text("signature wrong")
    expect(region.get_by_role("heading", name="The string to sign")).to_be_visible()
    expect(region).to_contain_text(f"/blob/{KEY.account}/{CONTAINER}/{BLOB}")
    assert KEY.key not in console.page.content()
    region = explain(console, f"{blob_url(served)}&spr=https")
    expect(region).to_contain_text("The field spr was added after it was signed.")
    region = explain(console, blob_url(served, hours=-1))
    expect(region).to_contain_text("signature right")
    expect(region).to_contain_text("has expired")


def test_its_stored_policy_is_read_too(console: Console, served: Served) -> None:
    console.sign_in("/access")
    for policy, said in (("readers", "list"), ("gone", "no stored access policy 'gone'")):
        token = generate_container_sas(
            KEY.account, CONTAINER, account_key=KEY.key, policy_id=policy
        )
        region = explain(console, f"{served.server.url}/{KEY.account}/{CONTAINER}?{token}")
        expect(region).to_contain_text("signature right")
        expect(region).to_contain_text(said)


def test_of_another_account_only_the_fields_are_said(console: Console, served: Served) -> None:
    console.sign_in("/access")
    region = explain(console, blob_url(served).replace(f"/{KEY.account}/", "/other/"))
    expect(region).to_contain_text("It is for another account")
    expect(region.get_by_role("table", name="Fields")).to_be_visible()
    console.page.get_by_label("SAS", exact=True).fill("hello")
    console.button("Explain").click()
    expect(console.page.get_by_role("alert").filter(has_text="neither sig nor sv")).to_be_visible()
    expect(region).to_be_hidden()


def test_stored_policies_are_listed_for_each_service(console: Console) -> None:
    console.sign_in("/access")
    table = console.page.get_by_role("table", name="Stored access policies")
    expect(table.get_by_role("row").filter(has_text=CONTAINER)).to_contain_text("readers")
    console.page.get_by_label("Policies of").select_option("Queues")
    expect(table.get_by_role("row").filter(has_text=QUEUE)).to_contain_text("workers")
    for service in ("Tables", "Shares"):
        console.page.get_by_label("Policies of").select_option(service)
        expect(console.page.get_by_text("on this page have no stored policies")).to_be_visible()


def test_a_sas_is_told_which_credential_it_needs(console: Console, served: Served) -> None:
    console.open("/access")
    token = generate_container_sas(
        KEY.account,
        CONTAINER,
        account_key=KEY.key,
        permission=ContainerSasPermissions(list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    url = f"{served.server.url}/{KEY.account}/{CONTAINER}?{token}"
    console.page.get_by_label("SAS URL").fill(url)
    console.page.get_by_label("SAS URL").press("Enter")
    needs = console.page.get_by_text("This view needs another sign-in: account key.")
    expect(needs).to_be_visible()


def test_the_keyboard_is_enough(console: Console, served: Served) -> None:
    console.sign_in("/access")
    console.page.get_by_role("table", name="Stored access policies").wait_for()
    field = console.page.get_by_label("SAS", exact=True)
    field.focus()
    expect(field).to_be_focused()
    console.page.keyboard.insert_text(blob_url(served))
    console.page.keyboard.press("Enter")
    region = console.page.get_by_role("region", name="Explanation", exact=True)
    expect(region).to_be_focused()
    press_until(console, "Explain", "Shift+Tab")
    press_until(console, "Reload", "Shift+Tab")
    console.page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", schemes("dark"))
def test_it_suits_everyone(new_console: NewConsole, served: Served, scheme: str) -> None:
    console = new_console(color_scheme=scheme, viewport=_PHONE)
    console.sign_in("/access")
    console.page.get_by_role("table", name="Stored access policies").wait_for()
    explain(console, f"{blob_url(served, hours=-1)}&spr=https")
    assert console.page.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"]
    main = "document.querySelector('main')"
    assert console.page.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    assert console.serious_findings() == []
