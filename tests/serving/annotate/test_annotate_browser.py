"""The pages before the real server: a person's keys become events of the log."""

import base64
import json
import subprocess
import sys

import pytest
from at_work import write_items

from ordspan.serving.engine import LOG
from ordspan.serving.log import Log

expect = pytest.importorskip("playwright.sync_api").expect
TOKEN = "a-secret-of-some-length"
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def address(tmp_path):
    """Where a process asks for grades of items with a picture, behind a token."""
    path, _ = write_items(tmp_path, n=30)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{header},picture", *(f"{row},a.png" for row in rows)]))
    (tmp_path / "a.png").write_bytes(PICTURE)
    (tmp_path / "token").write_text(TOKEN)
    words = [sys.executable, "-m", "ordspan", "annotate", path, "--grades", "low,mid,high"]
    words += ["--id", "id", "--state", tmp_path / "state", "--token-file", tmp_path / "token"]
    command = [str(word) for word in (*words, "--port", "0", "--json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield json.loads(process.stdout.readline())["address"]
        process.terminate()


def test_keys_in_a_browser_become_answers_on_disk(browser, address, tmp_path):
    problems = []
    page = browser.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{address}/#token={TOKEN}")
    page.fill("#name", "ann")
    heading, items = page.locator("#item-heading"), [""]

    def press(*keys):
        for key in keys:
            page.keyboard.press(key)
        expect(heading).not_to_have_text(items[-1])
        expect(page.locator("#main")).to_have_attribute("aria-busy", "false")
        expect(page.locator("#cells img")).to_have_js_property("naturalWidth", 1)
        items.append(heading.inner_text())

    press("Enter")
    press("2", "Shift+ArrowRight", "Enter")
    press("s")
    press("u")
    press("1", "Enter")
    page.goto(f"{address}/progress")
    page.get_by_role("rowheader", name="ann").wait_for()
    page.close()
    assert problems == []
    assert items[2] == items[4]
    log = Log(tmp_path / "state" / LOG)
    events = list(log.select("TRUE"))
    log.close()
    assert [event.kind for event in events] == ["learn", "skip", "undo", "learn"]
    learned = [event for event in events if event.kind == "learn"]
    assert [(e.lower, e.upper) for e in learned] == [(2, 3), (1, 1)]
    assert [f"x{json.loads(event.extra)['item']}" for event in learned] == items[1:3]
