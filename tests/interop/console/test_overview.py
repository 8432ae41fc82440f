"""The overview: figures that live, connection strings, examples."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from tests.conformance.client import PUT_BLOB
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, NewConsole, Served

_REQUESTS_MAX = 500


def test_it_shows_the_services_with_their_ports(console: Console, served: Served) -> None:
    console.sign_in()
    table = console.page.get_by_role("table", name="Services")
    for name in ("Blobs", "Queues", "Tables", "Files"):
        expect(table.get_by_role("row", name=re.compile(name))).to_be_visible()
    expect(table.get_by_role("cell", name=str(served.server.port), exact=True)).to_be_visible()


def test_the_figures_move_while_one_looks(console: Console, served: Served) -> None:
    console.sign_in()
    row = console.page.get_by_role("table", name="Services").get_by_role("row", name="Blobs")
    expect(row).to_be_visible()
    served.client.put("/moving?restype=container")
    # The fourth cell is the latency of the median, which is not known without requests.
    latency = row.get_by_role("cell").nth(3)
    for number in range(_REQUESTS_MAX):
        served.client.put(f"/moving/{number}", PUT_BLOB, b"text")
        if re.search(r"\d", latency.text_content() or ""):
            break
        console.page.wait_for_timeout(100)
    else:
        raise AssertionError("the figures never moved")
    chart = console.page.get_by_role("figure").filter(has_text="Requests a second")
    expect(chart.get_by_text(re.compile(r"[1-9]")).first).to_be_visible()


def test_the_key_is_shown_only_on_request(console: Console) -> None:
    console.sign_in()
    text = console.page.get_by_text("DefaultEndpointsProtocol=http;")
    expect(text).to_be_visible()
    assert KEY.key not in console.page.content()
    console.button("Show key").click()
    expect(text).to_contain_text(f"AccountKey={KEY.key};")
    console.button("Hide key").click()
    expect(text).not_to_contain_text(KEY.key)


def test_the_connection_string_is_copied_whole(new_console: NewConsole, served: Served) -> None:
    console = new_console(permissions=["clipboard-read", "clipboard-write"])
    console.sign_in()
    console.button("Copy connection string").click()
    expect(console.page.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    copied = console.page.evaluate("navigator.clipboard.readText()")
    assert copied == served.server.connection_string
    assert KEY.key not in console.page.content()


def test_each_sdk_has_a_short_example(console: Console) -> None:
    console.sign_in()
    tabs = console.page.get_by_role("tab")
    expect(tabs.first).to_be_visible()
    for name in ("Python", "JavaScript", ".NET", "Java", "Go"):
        console.page.get_by_role("tab", name=name, exact=True).click()
        panel = console.page.get_by_role("tabpanel", name=name, exact=True)
        assert 3 <= len((panel.text_content() or "").splitlines()) <= 4


def test_it_is_gone_when_the_server_does_not_answer_and_says_so(console: Console) -> None:
    console.sign_in()
    expect(console.page.get_by_role("table", name="Services")).to_be_visible()
    console.page.route("**/console/v1/overview", lambda route: route.abort())
    expect(console.page.get_by_role("alert").filter(has_text="does not answer")).to_be_visible()
    expect(console.page.get_by_role("table", name="Services")).to_be_visible()
    console.page.unroute("**/console/v1/overview")
    expect(console.page.get_by_role("alert").filter(has_text="does not answer")).to_be_hidden()


# Counts the pixels of a chart that have a colour: its axes are grey.
_COLOURED = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue, alpha] = data.slice(at, at + 4);
    if (alpha > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) count += 1;
  }
  return count;
}"""
_LATENCY_IS_DRAWN = f"""() => [...document.querySelectorAll("figure")].some((chart) => {{
  const canvas = chart.textContent.includes("Latency") && chart.querySelector("canvas");
  return canvas && ({_COLOURED})(canvas) > 0;
}})"""


def test_a_value_between_two_gaps_is_drawn(console: Console) -> None:
    def with_one_value(route: Route) -> None:
        found = route.fetch()
        hour = found.json()
        hour["requests_per_s"] = [0.0] * 9
        hour["latency_p50_s"] = hour["latency_p99_s"] = [None] * 4 + [0.5] + [None] * 4
        route.fulfill(response=found, json=hour)

    console.page.route("**/console/v1/history", with_one_value)
    console.sign_in()
    chart = console.page.get_by_role("figure").filter(has_text="Latency")
    expect(chart).to_contain_text("500 ms")
    console.page.wait_for_function(_LATENCY_IS_DRAWN)
