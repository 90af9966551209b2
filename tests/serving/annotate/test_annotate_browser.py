"""The pages before the real server: a person's keys become events of the log."""

import json
import subprocess
import sys

import pytest
from at_work import write_items

from devtools import Page
from ordspan.serving.engine import LOG
from ordspan.serving.log import Log

TOKEN = "a-secret-of-some-length"
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da6364f8cf"
    "500f00038601805a347d6b0000000049454e44ae426082"
)


@pytest.fixture
def address(tmp_path):
    """Where a process asks for grades of items with a picture, behind a token."""
    path, _ = write_items(tmp_path, n=30)
    rows = path.read_text().splitlines()
    named = [f"{row},{'picture' if number == 0 else 'a.png'}" for number, row in enumerate(rows)]
    path.write_text("\n".join(named) + "\n")
    (tmp_path / "a.png").write_bytes(PICTURE)
    (tmp_path / "token").write_text(TOKEN)
    words = [sys.executable, "-m", "ordspan", "annotate", path, "--grades", "low,mid,high"]
    words += ["--id", "id", "--state", tmp_path / "state", "--token-file", tmp_path / "token"]
    command = [str(word) for word in (*words, "--port", "0", "--json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield json.loads(process.stdout.readline())["address"]
        process.terminate()


def test_keys_in_a_browser_become_answers_on_disk(browser, address, tmp_path):
    page = Page(browser)
    page.open(f"{address}/#token={TOKEN}")
    page.wait_for("document.querySelector('#hello') !== null")
    page.press(*"ann", "Enter")

    def ready():
        page.wait_for("document.querySelector('#main').ariaBusy === 'false'")
        page.wait_for("document.querySelector('#item-heading').innerText.startsWith('x')")
        page.wait_for("document.querySelector('img')?.naturalWidth === 1")
        return page.text("#item-heading")

    first = ready()
    page.press("2", "Shift+ArrowRight", "Enter")
    page.wait_for(f"document.querySelector('#item-heading').innerText !== '{first}'")
    second = ready()
    page.press("s")
    page.wait_for(f"document.querySelector('#item-heading').innerText !== '{second}'")
    ready()
    page.press("u")
    page.wait_for(f"document.querySelector('#item-heading').innerText === '{second}'")
    ready()
    page.press("1", "Enter")
    page.wait_for(f"document.querySelector('#item-heading').innerText !== '{second}'")
    page.open(f"{address}/progress")
    page.wait_for("document.body.innerText.includes('ann')")
    assert page.problems() == []
    page.close()
    log = Log(tmp_path / "state" / LOG)
    events = list(log.read())
    log.close()
    assert [event.kind for event in events] == ["learn", "skip", "undo", "learn"]
    assert [(e.lower, e.upper) for e in events if e.kind == "learn"] == [(2, 3), (1, 1)]
    asked = [json.loads(event.extra) for event in events if event.kind == "learn"]
    assert [f"x{one['item']}" for one in asked] == [first, second]
