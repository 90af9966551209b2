"""What people do on the pages, and what they see."""

import pytest

expect = pytest.importorskip("playwright.sync_api").expect
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def shows(page, selector, text):
    expect(page.locator(selector)).to_have_text(text)


def ready(page, row=1):
    """Wait for an item."""
    shows(page, "#item-heading", f"row {row}")
    expect(page.locator("#main")).to_have_attribute("aria-busy", "false")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def grade_point(page, rank):
    """The middle of a grade on the scale."""
    return middle(page, f".ticks i:nth-child({rank})")


def middle(page, selector):
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, start, end):
    """Drag with the mouse."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=8)
    page.mouse.up()


def swipe(page, start, end, steps=8):
    """Drag with a finger, which Playwright has no word for."""
    touch = page.context.new_cdp_session(page)
    ways = [
        [a + (b - a) * step / steps for a, b in zip(start, end, strict=True)]
        for step in range(steps + 1)
    ]
    for number, (x, y) in enumerate(ways):
        kind = "touchMove" if number else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
