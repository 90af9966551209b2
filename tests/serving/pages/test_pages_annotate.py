"""The page of ``ordspan annotate`` in a real browser: what a person does is what arrives."""

from itertools import pairwise

import pytest
from acting import PHONE, drag, expect, grade_point, middle, press, ready, shows, swipe

HOSTILE = '<img src=x onerror="window.hacked = true"><b>bold</b>'
TURNED = "\u202eright to left\u202c"


def changes(staged):
    return [path for path, _ in staged.calls if path != "/api/next"]


def test_a_name_is_asked_first_and_kept(staged, open_page):
    page = open_page(name=None)
    expect(page.locator("#hello")).to_be_visible()
    assert staged.calls == []
    press(page, *"suhl?1", "Enter")  # letters of a name, though keys of the page
    ready(page)
    assert [(path, body["annotator"]) for path, body in staged.calls] == [("/api/next", "suhl?1")]
    page.reload()
    ready(page)
    shows(page, "#annotator", "suhl?1")
    page.click("#rename")
    press(page, "Control+a", *"bob", "Enter")
    shows(page, "#annotator", "bob")
    ready(page)
    assert staged.calls[-1][1]["annotator"] == "bob"


def test_nothing_is_chosen_before_the_first_touch(staged, open_page):
    page = open_page()
    shows(page, "#chosen", "nothing selected")
    shows(page, "#give", "Choose a grade first")
    for handle in page.get_by_role("slider").all():
        expect(handle).to_have_attribute("aria-valuetext", "not selected")
    press(page, "Enter")
    page.mouse.click(*middle(page, "#give"))
    expect(page.locator("#note")).to_contain_text("Choose a grade first")
    assert changes(staged) == []


CHOOSING = {
    "abc": [
        (["ArrowRight"], "b"),
        (["ArrowRight", "ArrowRight"], "c"),
        (["2", "Shift+ArrowRight"], "b to c"),
        (["2", "Shift+ArrowRight", "Shift+ArrowLeft", "Shift+ArrowLeft"], "a to b"),
        (["1", "Shift+ArrowRight", "ArrowRight", "ArrowRight"], "b to c"),  # as wide at the end
    ],
    "abcd": [(["ArrowLeft"], "b"), (["ArrowRight"], "c")],  # the middle
    "012": [(["1"], "1"), (["1", "7"], "1")],  # the grade of that name
}


@pytest.mark.parametrize("grades", CHOOSING)
def test_keys_alone_choose_a_grade_or_a_range(staged, open_page, grades):
    staged.grades = list(grades)
    page = open_page()
    for row, (keys, chosen) in enumerate(CHOOSING[grades], 1):
        ready(page, row)
        press(page, *keys)
        shows(page, "#chosen", chosen)
        shows(page, "#give", f"Submit: {chosen}")
        press(page, "Enter")
    expect(page.locator("#count-words")).to_contain_text(f"{len(CHOOSING[grades])} of 5")
    ends = [chosen.split(" to ") for _, chosen in CHOOSING[grades]]
    assert staged.labels() == [(grades.index(e[0]) + 1, grades.index(e[-1]) + 1) for e in ends]
    assert {given["via"] for given in staged.given} == {"slider"}
    assert all(0 < given["seconds"] < 60 for given in staged.given)
    assert len(set(staged.keys_sent())) == len(staged.given)


def test_handles_follow_the_slider_pattern(staged, open_page):
    staged.grades = [f"g{rank}" for rank in range(1, 31)]
    page = open_page()
    low, high = (page.get_by_role("slider", name=f"{end} grade") for end in ("lowest", "highest"))

    def says(handle, **values):
        for name, value in values.items():
            expect(handle).to_have_attribute(f"aria-value{name}", value)

    low.focus()
    press(page, "ArrowUp", "Tab", "End")
    says(low, min="1", max="30", now="16", text="g16")
    says(high, min="16", max="30", now="30", text="g30")
    press(page, "PageDown", "ArrowDown")
    says(high, text="g26")
    press(page, "Home")
    says(high, text="g16")
    press(page, "ArrowLeft")  # not below the other handle
    shows(page, "#chosen", "g16")
    press(page, "PageUp", "Enter")
    ready(page, 2)
    assert staged.labels() == [(16, 19)]


def test_a_click_is_exact_and_a_drag_is_a_range(staged, open_page):
    staged.grades = list("abcde")
    page = open_page()
    page.mouse.click(*grade_point(page, 2))
    shows(page, "#chosen", "b")
    drag(page, grade_point(page, 4), grade_point(page, 3))
    shows(page, "#chosen", "c to d")
    drag(page, middle(page, ".grip.high"), grade_point(page, 5))
    shows(page, "#chosen", "c to e")
    drag(page, middle(page, ".grip.low"), grade_point(page, 5))
    shows(page, "#chosen", "e")
    page.click(".names span:nth-child(1)")
    page.click("#give")
    ready(page, 2)
    assert staged.labels() == [(1, 1)]


def test_one_hundred_grades_can_be_reached_by_thumb(staged, open_page):
    staged.grades = [str(rank) for rank in range(1, 101)]
    page = open_page(**PHONE)
    page.tap("[data-end=high][data-by='1']")
    shows(page, "#chosen", "51")
    page.tap("[data-end=low][data-by='-1']")
    shows(page, "#chosen", "50 to 51")
    swipe(page, grade_point(page, 20), grade_point(page, 60))
    shows(page, "#chosen", "20 to 60")
    boxes = [name.bounding_box() for name in page.locator(".names span:not(.out)").all()]
    assert len(boxes) > 3
    assert all(one["x"] + one["width"] <= other["x"] for one, other in pairwise(boxes))


def test_a_finger_draws_a_range_and_a_scroll_takes_it_back(staged, open_page):
    staged.items = [[{"name": "text", "kind": "text", "value": "long\n" * 80}]]
    page = open_page(**PHONE)
    swipe(page, grade_point(page, 1), grade_point(page, 2))
    shows(page, "#chosen", "low to mid")
    x, y = grade_point(page, 3)
    swipe(page, (x, y), (x, y - 300))
    expect(page.locator("html")).not_to_have_js_property("scrollTop", 0)
    shows(page, "#chosen", "low to mid")


def test_what_is_pressed_twice_acts_once(staged, open_page):
    page = open_page()
    press(page, "2")
    for row, key in enumerate(("Enter", "s"), 2):
        for _ in range(12):  # held down so long that it repeats
            page.keyboard.down(key)
        page.keyboard.up(key)
        ready(page, row)
    assert changes(staged) == ["/api/answer", "/api/answer"]
    press(page, "2")
    page.evaluate("for (const id of ['give', 'give', 'skip', 'undo']) window[id].click()")
    ready(page, 4)
    press(page, "2")
    page.focus("#skip")  # Enter on a button only clicks it
    press(page, "Enter")
    ready(page, 5)
    assert changes(staged)[2:] == ["/api/answer", "/api/answer"]


def test_take_back_shows_the_item_with_its_answer(staged, open_page):
    page = open_page(faulty=True)
    press(page, "u")
    shows(page, "#trouble", "ann has no answer that can be undone")
    press(page, "2", "Shift+ArrowRight", "Enter")
    ready(page, 2)
    shows(page, "#trouble", "")
    press(page, "s")
    ready(page, 3)
    shows(page, "#count-words", "1 of 5 answered, 1 skipped")
    assert (staged.given[1]["lower"], staged.given[1]["upper"]) == (None, None)
    press(page, "u")
    ready(page, 2)
    shows(page, "#chosen", "nothing selected")
    page.click("#undo")
    ready(page, 1)
    shows(page, "#chosen", "mid to high")
    expect(page.locator("#note")).to_contain_text("Undid the ")
    press(page, "Enter")
    ready(page, 2)
    assert staged.labels() == [(2, 3)]


def test_higher_and_lower_than_the_guess_are_ranges(staged, open_page):
    staged.grades, staged.show_guess = list("abcde"), True
    staged.guess = [2, 3, 3]
    page = open_page()
    expect(page.locator("#guess-words")).to_contain_text("b to c")
    press(page, "h")
    ready(page, 2)
    staged.guess = [2, 5, 3]
    page.click("#lower")
    ready(page, 3)
    expect(page.locator("#higher")).to_be_hidden()  # there is nothing above it
    press(page, "h")
    expect(page.locator("#note")).to_contain_text("No guess is shown")
    assert staged.labels() == [(4, 5), (1, 1)]
    assert [given["via"] for given in staged.given] == ["higher", "lower"]
    assert {given["shown"] for given in staged.given} == {True}
    assert staged.given[0]["guess"] == (2, 3, 3)


def test_a_hidden_guess_counts_as_shown_once_it_was_seen(staged, open_page):
    staged.guess = [1, 1, 1]
    page = open_page()
    marker = page.locator(".marker")
    expect(marker).to_be_hidden()
    expect(page.locator("#guess-words")).not_to_contain_text("low")
    press(page, "h", "2", "Enter")
    ready(page, 2)
    page.click("#reveal")
    expect(marker).to_be_visible()
    press(page, "g")
    expect(marker).to_be_hidden()
    press(page, "2", "Enter")
    ready(page, 3)
    assert [given["shown"] for given in staged.given] == [False, True]
    assert staged.labels() == [(2, 2), (2, 2)]


def test_the_end_is_friendly_and_can_be_taken_back(staged, open_page):
    staged.items = staged.items[:1]
    page = open_page()
    press(page, "1", "Enter")
    expect(page.locator("#done")).to_contain_text("--export labels.csv")
    expect(page.locator("#done")).to_contain_text("You answered 1 of 1 items.")
    expect(page.locator("#done-heading")).to_be_focused()
    press(page, "u")
    ready(page)
    shows(page, "#chosen", "low")


def test_texts_are_shown_as_texts(staged, open_page):
    staged.grades = [HOSTILE, TURNED, "high"]
    cells = [{"name": HOSTILE, "kind": kind, "value": HOSTILE} for kind in ("text", "number")]
    staged.items = [[*cells, {"name": "empty", "kind": "text", "value": ""}]]
    staged.guess, staged.show_guess = [1, 2, 1], True
    page = open_page(name=HOSTILE)
    press(page, "1", "Shift+ArrowRight")
    shows(page, "#chosen", f"{HOSTILE} – {TURNED}")
    assert page.locator("#cells dd").all_inner_texts() == [HOSTILE, HOSTILE, "empty"]
    assert page.locator("main img, main b").count() == 0
    assert page.evaluate("window.hacked") is None


def test_pictures_are_named_after_their_column(staged, open_page):
    staged.items = [[{"name": "front", "kind": "image", "value": "front.png"}]]
    staged.token = "secret"
    page = open_page("/#token=secret")
    ready(page)
    expect(page.get_by_alt_text("front")).to_have_js_property("naturalWidth", 1)
    assert page.evaluate("location.hash") == ""


def test_the_keys_are_shown_and_letters_can_be_switched_off(staged, open_page):
    page = open_page()
    press(page, "?")
    expect(page.locator("#keys")).to_be_visible()
    press(page, "s", "Enter")  # no keys of the page while it is open
    page.click("#letters")
    press(page, "Escape", "s", "2")
    expect(page.locator("#keys")).to_be_hidden()
    shows(page, "#chosen", "nothing selected")
    press(page, "ArrowRight", "Enter")
    ready(page, 2)
    assert staged.labels() == [(2, 2)]


@pytest.mark.parametrize("fault", ["drop", "late drop", 503, 500])
def test_an_answer_is_tried_again_under_its_key(staged, open_page, fault):
    page = open_page(faulty=True)
    staged.faults = [fault]
    press(page, "2", "Enter", "Enter", "s")  # what is pressed meanwhile is not another answer
    expect(page.locator("#trouble")).to_contain_text("Trying again")
    expect(page.locator("#trouble")).to_contain_text("Nothing is lost")
    ready(page, 2)
    shows(page, "#trouble", "")
    assert staged.labels() == [(2, 2)]
    staged.faults = [fault, None, fault]
    press(page, "s")
    ready(page, 3)
    press(page, "u")
    ready(page, 2)
    first, again, *skips_and_undos = staged.keys_sent()
    assert first == again
    assert skips_and_undos[0] == skips_and_undos[1] != skips_and_undos[2] == skips_and_undos[3]


def test_a_reload_asks_first_and_sends_what_was_not_yet_taken(staged, open_page):
    page, asked = open_page(faulty=True), []
    page.on("dialog", lambda dialog: asked.append(dialog.type) or dialog.accept())
    staged.faults = ["late drop", *["drop"] * 50]
    press(page, "3", "Enter")
    expect(page.locator("#trouble")).to_contain_text("Trying again")
    page.reload()
    assert asked == ["beforeunload"]
    staged.faults = []
    ready(page, 2)
    assert staged.labels() == [(3, 3)]
    assert len(set(staged.keys_sent())) == 1


def test_a_refused_answer_is_shown_and_can_be_mended(staged, open_page):
    page = open_page(faulty=True)
    staged.faults = [422]
    press(page, "2", "Enter")
    shows(page, "#trouble", "The queue is full.")
    shows(page, "#chosen", "mid")
    press(page, "1", "Enter")
    ready(page, 2)
    assert staged.labels() == [(1, 1)]
    assert len(set(staged.keys_sent())) == 2


def test_a_missing_token_is_asked_for(staged, open_page):
    staged.token = "sus"
    page = open_page(faulty=True)
    for token in ("wrong", "sus"):
        expect(page.locator("#token-value")).to_be_focused()
        expect(page.locator("#token-value")).to_have_value("")
        press(page, *token, "Enter")
    ready(page)
    assert staged.given == []


def test_keys_exist_without_a_secure_context(staged, open_page):
    page = open_page(host="annotate.test")
    assert not page.evaluate("isSecureContext")
    for row in (1, 2):
        ready(page, row)
        press(page, "s")
    ready(page, 3)
    assert len(set(staged.keys_sent())) == 2
