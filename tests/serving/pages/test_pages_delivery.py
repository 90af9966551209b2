"""What a person did arrives once, through dropped connections, full queues and reloads."""

import pytest
from test_pages_annotate import labels, ready


def keys_sent(fake):
    return [body["key"] for path, body in fake.calls if path != "/api/next"]


@pytest.mark.parametrize("fault", ["drop", "late drop", 503, 500])
def test_an_answer_is_tried_again_under_its_key(fake, open_page, fault):
    page = open_page(faulty=True)
    ready(page)
    fake.faults = [fault]
    page.press("2", "Enter", "Enter", "s")  # what is pressed meanwhile is not another answer
    page.wait_for("document.querySelector('#trouble').innerText.includes('Trying again')")
    assert "Nothing is lost" in page.text("#trouble")
    ready(page, 2)
    assert page.text("#trouble") == ""
    assert labels(fake) == [(2, 2)]
    assert len(keys_sent(fake)) == 2
    assert len(set(keys_sent(fake))) == 1


def test_a_skip_and_a_take_back_are_tried_again_too(fake, open_page):
    page = open_page(faulty=True)
    ready(page)
    fake.faults = ["drop", None, "drop"]
    page.press("s")
    ready(page, 2)
    page.press("u")
    ready(page, 1)
    first, second, third, fourth = keys_sent(fake)
    assert first == second != third == fourth


def test_a_reload_sends_what_was_not_yet_taken(fake, open_page):
    page = open_page(faulty=True)
    ready(page)
    fake.faults = ["late drop", *["drop"] * 50]
    page.press("3", "Enter")
    page.wait_for("document.querySelector('#trouble').innerText.includes('Trying again')")
    page.reload(leave=True)
    fake.faults = []
    ready(page, 2)
    assert labels(fake) == [(3, 3)]
    assert len(set(keys_sent(fake))) == 1


def test_a_refused_answer_is_shown_and_can_be_mended(fake, open_page):
    page = open_page(faulty=True)
    ready(page)
    fake.faults = [422]
    page.press("2", "Enter")
    page.wait_for("document.querySelector('#trouble').innerText === 'The queue is full.'")
    assert page.text("#chosen") == "mid"
    page.press("1", "Enter")
    ready(page, 2)
    assert labels(fake) == [(1, 1)]
    assert len(set(keys_sent(fake))) == 2


def test_a_missing_token_is_asked_for(fake, open_page):
    fake.token = "sus"
    page = open_page(faulty=True)
    page.wait_for("document.querySelector('#token').open")
    page.press(*"wrong", "Enter")
    page.wait_for("document.querySelector('#token').open && !document.activeElement.value")
    page.press(*"sus", "Enter")
    ready(page)
    assert fake.given == []


def test_keys_exist_without_a_secure_context(fake, open_page):
    page = open_page()
    ready(page)
    page.run("crypto.randomUUID = undefined")
    page.press("s")
    ready(page, 2)
    page.press("s")
    ready(page, 3)
    assert len(set(keys_sent(fake))) == 2
