"""Using the console with the keyboard alone.

Lives here: moving the focus, typing, and what must hold wherever the focus stops. Must not live
here: what a person does in a view (test_*.py). Whoever types waits until the field has the focus,
since the page gives it after a paint.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Error, Locator, expect

from tests.interop.console.browsers import Console

_STOPS_MAX = 120
# What has the focus: its name as a screen reader says it, and whether one sees that it has it.
_FOCUSED = """() => {
  const one = document.activeElement;
  const label = [...(one.labels ?? [])].map((each) => each.textContent).join(" ");
  const style = getComputedStyle(one);
  const isOutlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const isSeen = one.matches(":focus-visible") && (isOutlined || style.boxShadow !== "none");
  return { name: (one.ariaLabel || label || one.textContent).trim(), tag: one.tagName, isSeen };
}"""
_IS_ON = f"(name) => ({_FOCUSED})().name === name"


def press(console: Console, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        console.page.keyboard.press(key)


def type_into(field: Locator, text: str) -> None:
    """Wait until a field has the focus; then type a text in place of what is there."""
    expect(field).to_be_focused()
    field.page.keyboard.press("Control+a")
    field.page.keyboard.type(text)


def confirm_by_name(field: Locator, name: str) -> None:
    """Type a name into the field of a dialog that asks for it, and confirm by Enter."""
    type_into(field, name)
    expect(field.page.get_by_role("button", name="Confirm", exact=True)).to_be_enabled()
    field.page.keyboard.press("Enter")


def escape(console: Console) -> None:
    """Wait for a dialog, and close it by Escape."""
    dialog = console.page.get_by_role("dialog")
    dialog.wait_for()
    console.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def focused(console: Console) -> dict[str, Any]:
    """Return the name and the tag of what has the focus, and whether that is seen."""
    found: dict[str, Any] = console.page.evaluate(_FOCUSED)
    return found


def must_be_on(console: Console, name: str) -> None:
    """Wait until the focus is on what is named so."""
    try:
        console.page.wait_for_function(_IS_ON, arg=name)
    except Error:
        found = focused(console)["name"][:80]
        raise AssertionError(f"the focus is on {found!r}, not on {name!r}") from None


def press_until(console: Console, name: str, key: str = "Tab") -> None:
    """Move the focus by a key until it is on what is named so. It must be seen to be there."""
    passed = []
    for _ in range(_STOPS_MAX):
        console.page.keyboard.press(key)
        found = focused(console)
        if found["name"] == name:
            assert found["isSeen"], f"nobody sees that the focus is on {name!r}"
            return
        passed.append(found["name"][:40])
    raise AssertionError(f"the key {key} never comes to {name!r}, but to {passed}")


def activate(console: Console, name: str, key: str = "Enter") -> None:
    """Move the focus forwards to what is named so, and press it."""
    press_until(console, name)
    console.page.keyboard.press(key)
