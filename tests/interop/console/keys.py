"""Using the console with the keyboard alone.

Lives here: moving the focus, and what must hold wherever it stops. Must not live here: what a
person does in a view (test_*.py).
"""

from __future__ import annotations

from typing import Any

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


def press(console: Console, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        console.page.keyboard.press(key)


def type_text(console: Console, text: str) -> None:
    """Type a text into what has the focus, in place of what is there."""
    console.page.keyboard.press("Control+a")
    console.page.keyboard.type(text)


def focused(console: Console) -> dict[str, Any]:
    """Return the name and the tag of what has the focus, and whether that is seen."""
    found: dict[str, Any] = console.page.evaluate(_FOCUSED)
    return found


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
