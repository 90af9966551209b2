"""The page of ``ordspan annotate`` in a real browser: what a person does is what arrives."""

from itertools import pairwise

import pytest

HOSTILE = '<img src=x onerror="window.hacked = true"><b>bold</b>'
TURNED = "\u202eright to left\u202c"


def ready(page, row=1):
    page.wait_for(f"document.querySelector('#item-heading').innerText === 'row {row}'")
    page.wait_for("document.querySelector('#main').ariaBusy === 'false'")


def grade_point(page, rank, share=0.5):
    """The middle of a grade on the scale."""
    return page.run(
        f"""(() => {{ const cells = document.querySelectorAll(".ticks i");
        const box = cells[{rank} - 1].getBoundingClientRect();
        return [box.x + box.width * {share}, box.y + box.height / 2]; }})()"""
    )


def labels(fake):
    return [(given["lower"], given["upper"]) for given in fake.given]


def test_a_name_is_asked_first_and_kept(fake, open_page):
    page = open_page(name=None)
    assert page.visible("#hello")
    assert fake.calls == []
    page.press(*"suhl?1", "Enter")  # letters of a name, though keys of the page
    ready(page)
    assert fake.calls == [("/api/next", {"annotator": "suhl?1", "skip_items": []})]
    page.reload()
    ready(page)
    assert page.text("#annotator") == "suhl?1"
    page.click("#rename")
    page.press("Control+a", *"bob", "Enter")
    page.wait_for("document.querySelector('#annotator').innerText === 'bob'")
    ready(page)
    assert fake.calls[-1][1]["annotator"] == "bob"


def test_nothing_is_chosen_before_the_first_touch(fake, open_page):
    page = open_page()
    ready(page)
    assert page.text("#chosen") == "nothing selected"
    assert page.text("#give") == "Choose a grade first"
    values = "[...document.querySelectorAll('[role=slider]')].map(e => e.ariaValueText)"
    assert page.run(values) == ["not selected"] * 2
    page.press("Enter")
    page.click("#give")
    assert "Choose a grade first" in page.text("#note")
    assert [path for path, _ in fake.calls] == ["/api/next"]


def test_keys_alone_give_an_exact_grade_and_a_range(fake, open_page):
    page = open_page()
    ready(page)
    page.press("ArrowRight", "ArrowRight")  # the middle, then one up
    assert page.text("#chosen") == "high"
    assert page.text("#give") == "Submit: high"
    page.press("Enter")
    ready(page, 2)
    page.press("ArrowLeft", "Shift+ArrowLeft")
    assert page.text("#chosen") == "low to mid"
    page.press("Enter")
    ready(page, 3)
    assert labels(fake) == [(3, 3), (1, 2)]
    assert {given["via"] for given in fake.given} == {"slider"}
    assert all(0 < given["seconds"] < 60 for given in fake.given)
    assert len({given["key"] for given in fake.given}) == 2


def test_shift_moves_one_end_as_in_selected_text(open_page):
    page = open_page()
    ready(page)
    page.press("2", "Shift+ArrowRight")
    assert page.text("#chosen") == "mid to high"
    page.press("Shift+ArrowLeft", "Shift+ArrowLeft")
    assert page.text("#chosen") == "low to mid"
    page.press("ArrowRight")
    assert page.text("#chosen") == "mid to high"
    page.press("ArrowRight")  # the whole answer stays as wide at the end of the scale
    assert page.text("#chosen") == "mid to high"


@pytest.mark.parametrize(("n_grades", "key", "middle"), [(4, "ArrowLeft", 2), (4, "ArrowRight", 3)])
def test_arrows_start_in_the_middle(fake, open_page, n_grades, key, middle):
    fake.grades = [f"g{rank}" for rank in range(1, n_grades + 1)]
    page = open_page()
    ready(page)
    page.press(key)
    assert page.text("#chosen") == f"g{middle}"


def test_handles_follow_the_slider_pattern(fake, open_page):
    fake.grades = [f"g{rank}" for rank in range(1, 31)]
    page = open_page()
    ready(page)

    def handle(name):
        field = ["Min", "Max", "Now", "Text"]
        return page.run(f"{field}.map(f => document.querySelector('.{name}')['ariaValue' + f])")

    page.run("document.querySelector('.grip.low').focus()")
    page.press("ArrowUp", "Tab", "End")
    assert handle("low") == ["1", "30", "16", "g16"]
    assert handle("high") == ["16", "30", "30", "g30"]
    page.press("PageDown", "ArrowDown")
    assert handle("high")[3] == "g26"
    page.press("Home")
    assert handle("high")[3] == "g16"
    page.press("ArrowLeft")  # not below the other handle
    assert page.text("#chosen") == "g16"
    page.press("PageUp", "Enter")
    ready(page, 2)
    assert labels(fake) == [(16, 19)]
    names = "[...document.querySelectorAll('[role=slider]')].map(e => e.ariaLabel)"
    assert page.run(names) == ["lowest grade", "highest grade"]


def test_digits_choose_the_grade_of_that_name(fake, open_page):
    fake.grades = ["0", "1", "2"]
    page = open_page()
    ready(page)
    page.press("1")
    assert page.text("#chosen") == "1"
    page.press("7")
    assert page.text("#chosen") == "1"


def test_a_click_is_exact_and_a_drag_is_a_range(fake, open_page):
    fake.grades = list("abcde")
    page = open_page()
    ready(page)
    page.drag(grade_point(page, 2), grade_point(page, 2))
    assert page.text("#chosen") == "b"
    page.drag(grade_point(page, 4), grade_point(page, 3))
    assert page.text("#chosen") == "c to d"
    page.drag(page.middle(".grip.high"), grade_point(page, 5))
    assert page.text("#chosen") == "c to e"
    page.drag(page.middle(".grip.low"), grade_point(page, 5))
    assert page.text("#chosen") == "e"
    page.click(".names span:nth-child(1)")
    page.click("#give")
    ready(page, 2)
    assert labels(fake) == [(1, 1)]


def test_one_hundred_grades_can_be_reached_by_thumb(fake, open_page):
    fake.grades = [str(rank) for rank in range(1, 101)]
    page = open_page(width=360, height=740, touch=True)
    ready(page)
    page.tap("[data-end=high][data-by='1']")
    page.wait_for("document.querySelector('#chosen').innerText === '51'")
    page.tap("[data-end=low][data-by='-1']")
    page.wait_for("document.querySelector('#chosen').innerText === '50 to 51'")
    page.swipe(grade_point(page, 20), grade_point(page, 60))
    assert page.text("#chosen") == "20 to 60"
    boxes = page.run(
        """[...document.querySelectorAll(".names span:not(.out)")].map(label => {
        const box = label.getBoundingClientRect(); return [box.left, box.right]; })"""
    )
    assert len(boxes) > 3
    assert all(right <= left for (_, right), (left, _) in pairwise(boxes))


def test_a_finger_draws_a_range_and_a_scroll_takes_it_back(fake, open_page):
    fake.items = [[{"name": "text", "kind": "text", "value": "long\n" * 80}]]
    page = open_page(width=360, height=740, touch=True)
    ready(page)
    page.swipe(grade_point(page, 1), grade_point(page, 2))
    assert page.text("#chosen") == "low to mid"
    x, y = grade_point(page, 3)
    page.swipe([x, y], [x, y - 300])
    page.wait_for("scrollY > 50")
    assert page.text("#chosen") == "low to mid"


def test_enter_on_a_button_only_clicks_it(fake, open_page):
    page = open_page()
    ready(page)
    page.press("2")
    page.run("document.querySelector('#skip').focus()")
    page.press("Enter")
    ready(page, 2)
    page.press("1")
    page.run("document.querySelector('#give').focus()")
    page.press("Enter")
    ready(page, 3)
    assert [path for path, _ in fake.calls if path != "/api/next"] == ["/api/skip", "/api/answer"]


def test_a_held_key_acts_once(fake, open_page):
    page = open_page()
    ready(page)
    page.press("2")
    page.hold("Enter", 12)
    ready(page, 2)
    page.hold("s", 12)
    ready(page, 3)
    assert len(fake.given) == 2


def test_a_double_click_answers_once(fake, open_page):
    page = open_page()
    ready(page)
    page.press("2")
    page.run(
        "for (const id of ['give', 'give', 'skip', 'undo']) document.getElementById(id).click()"
    )
    ready(page, 2)
    assert labels(fake) == [(2, 2)]
    assert [path for path, _ in fake.calls if path != "/api/next"] == ["/api/answer"]


def test_take_back_shows_the_item_with_its_answer(fake, open_page):
    page = open_page(faulty=True)
    ready(page)
    page.press("u")
    page.wait_for("document.querySelector('#trouble').innerText")
    assert page.text("#trouble") == "ann has no answer that can be undone."
    page.press("2", "Shift+ArrowRight", "Enter")
    ready(page, 2)
    assert not page.text("#trouble")
    page.press("s")
    ready(page, 3)
    page.press("u")
    ready(page, 2)
    assert page.text("#chosen") == "nothing selected"
    page.click("#undo")
    ready(page, 1)
    assert page.text("#chosen") == "mid to high"
    assert "Undid the " in page.text("#note")
    page.press("Enter")
    ready(page, 2)
    assert labels(fake) == [(2, 3)]


def test_skip_says_who_and_how_long(fake, open_page):
    page = open_page()
    ready(page)
    page.press("s")
    ready(page, 2)
    (skip,) = fake.given
    assert set(skip) == {"key", "annotator", "item", "seconds", "asked_by"}
    assert page.text("#count-words") == "0 of 5 answered, 1 skipped"


def test_higher_and_lower_than_the_guess_are_ranges(fake, open_page):
    fake.grades, fake.show_guess = list("abcde"), True
    fake.guess = {"lower": 2, "upper": 3, "grade": 3}
    page = open_page()
    ready(page)
    assert "b to c" in page.text("#guess-words")
    page.press("h")
    ready(page, 2)
    page.click("#lower")
    ready(page, 3)
    assert labels(fake) == [(4, 5), (1, 1)]
    assert [given["via"] for given in fake.given] == ["higher", "lower"]
    assert {given["shown"] for given in fake.given} == {True}
    assert fake.given[0]["guess"] == fake.guess


def test_there_is_nothing_above_a_guess_at_the_top(fake, open_page):
    fake.show_guess, fake.guess = True, {"lower": 2, "upper": 3, "grade": 3}
    page = open_page()
    ready(page)
    assert not page.visible("#higher")
    page.press("h")
    assert "No guess is shown" in page.text("#note")
    assert fake.given == []


def test_a_hidden_guess_counts_as_shown_once_it_was_seen(fake, open_page):
    fake.guess = {"lower": 1, "upper": 1, "grade": 1}
    page = open_page()
    ready(page)
    assert not page.visible(".marker")
    assert "low" not in page.text("#guess-words")
    page.press("h", "2", "Enter")
    ready(page, 2)
    page.click("#reveal")
    assert page.visible(".marker")
    page.press("g")
    assert not page.visible(".marker")
    page.press("2", "Enter")
    ready(page, 3)
    assert [given["shown"] for given in fake.given] == [False, True]
    assert labels(fake) == [(2, 2), (2, 2)]


def test_the_end_is_friendly_and_can_be_taken_back(fake, open_page):
    fake.items = fake.items[:1]
    page = open_page()
    ready(page)
    page.press("1", "Enter")
    page.wait_for("document.querySelector('#done').checkVisibility()")
    assert "--export labels.csv" in page.text("#done")
    assert "You answered 1 of 1 items." in page.text("#done")
    assert page.run("document.activeElement.id") == "done-heading"
    page.press("u")
    ready(page)
    assert page.text("#chosen") == "low"


def test_texts_are_shown_as_texts(fake, open_page):
    fake.grades = [HOSTILE, TURNED, "high"]
    cells = [{"name": HOSTILE, "kind": kind, "value": HOSTILE} for kind in ("text", "number")]
    fake.items = [[*cells, {"name": "empty", "kind": "text", "value": ""}]]
    fake.guess, fake.show_guess = {"lower": 1, "upper": 2, "grade": 1}, True
    page = open_page(name=HOSTILE)
    ready(page)
    page.press("1", "Shift+ArrowRight")
    assert page.text("#chosen") == f"{HOSTILE} to {TURNED}"
    shown = "[...document.querySelectorAll('#cells dd')].map(e => e.innerText)"
    assert page.run(shown) == [HOSTILE, HOSTILE, "empty"]
    assert page.run("document.querySelectorAll('main img, main b').length") == 0
    assert page.run("window.hacked") is None


def test_pictures_are_named_after_their_column(fake, open_page):
    fake.items = [[{"name": "front", "kind": "image", "value": "front.png"}]]
    fake.token = "secret"
    page = open_page("/#token=secret")
    ready(page)
    page.wait_for("document.querySelector('#cells img')?.naturalWidth === 1")
    assert page.run("document.querySelector('#cells img').alt") == "front"
    assert page.run("location.hash") == ""


def test_the_keys_are_shown_and_letters_can_be_switched_off(fake, open_page):
    page = open_page()
    ready(page)
    page.press("?")
    assert page.visible("#keys")
    page.press("s", "Enter")  # no keys of the page while it is open
    page.click("#letters")
    page.press("Escape", "s", "2")
    assert not page.visible("#keys")
    assert page.text("#chosen") == "nothing selected"
    page.press("ArrowRight", "Enter")
    ready(page, 2)
    assert labels(fake) == [(2, 2)]
