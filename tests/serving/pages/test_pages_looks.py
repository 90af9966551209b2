"""Both pages fit a phone and a thumb, and axe-core finds nothing serious, light and dark."""

import pytest
from acting import PHONE, expect, press, shows

LIKERT = ["strongly disagree", "disagree", "neither agree nor disagree", "agree", "strongly agree"]
LONG = [f"{rank}{'w' * 200}" for rank in range(1, 8)]
HUNDRED = [str(rank) for rank in range(1, 101)]
CELLS = [
    {"name": "review", "kind": "text", "value": "Clean and quiet, but far from everything. " * 5},
    {"name": "a_column_with_a_long_name_without_spaces", "kind": "text", "value": "x" * 300},
    {"name": "photo", "kind": "image", "value": "photo.png"},
    *({"name": f"number {i}", "kind": "number", "value": str(i / 7)} for i in range(20)),
]
PROGRESS = {
    "answers": 57,
    "skips": 3,
    "items": 100,
    "items_answered": 48,
    "minutes": 12.4,
    "per_minute": 4.6,
    "range_share": 0.42,
    "mean_width": 1.7,
    "error": [
        {"answers": n, "mae": 0.6 + 1 / n, "low": 0.6 - 1 / n, "high": 0.6 + 3 / n}
        for n in range(1, 30)
    ],
    "best_constant": 0.95,
    "coverage": {"contains": 0.86, "meets": 0.94, "asked": 0.9},
    "annotators": [
        {"name": "<b>ann</b>", "answers": 40, "skips": 1}
        | {"per_minute": 5.2, "range_share": 0.3, "mean_width": 1.4}
    ],
    "agreement": {"items": 9, "pairs": 12, "same": 0.44, "meet": 0.89, "gap": 0.22},
    "anchoring": {"shown": {"n": 20, "distance": 0.41}, "hidden": {"n": 1, "distance": 0.83}},
}
SMALL = """[...document.querySelectorAll("button, a, summary, [role=slider]")]
  .filter(e => e.checkVisibility() && !e.matches(".skip-link"))
  .map(e => [e.textContent.trim() || e.ariaLabel, e.offsetWidth, e.offsetHeight])
  .filter(([, width, height]) => width < 44 || height < 44)"""


def check_fits_a_phone_and_a_thumb(page):
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(SMALL) == []


@pytest.mark.parametrize("grades", [["bad", "good"], LIKERT, HUNDRED, LONG], ids=len)
def test_an_item_fits_a_phone_and_a_thumb(staged, open_page, grades):
    staged.grades, staged.items = grades, [CELLS]
    staged.guess, staged.show_guess = [2, 2, 2], True
    page = open_page(**PHONE)
    check_fits_a_phone_and_a_thumb(page)  # with the handles at the ends of the scale
    press(page, "1", "Shift+ArrowRight")
    check_fits_a_phone_and_a_thumb(page)
    expect(page.locator("#give")).to_be_in_viewport(ratio=1)
    press(page, "s")
    expect(page.locator("#done")).to_be_visible()
    check_fits_a_phone_and_a_thumb(page)


@pytest.mark.parametrize("seen", [PROGRESS, None], ids=["data", "empty"])
def test_progress_fits_a_phone_and_a_thumb(staged, open_page, seen):
    staged.progress = seen
    page = open_page("/progress", **PHONE)
    expect(page.locator("#fresh")).not_to_be_empty()
    check_fits_a_phone_and_a_thumb(page)


def violations(page, axe):
    page.evaluate(f"{axe}; 0")
    return page.evaluate(
        """axe.run().then(found => found.violations
        .filter(one => ["serious", "critical"].includes(one.impact))
        .map(one => [one.id, one.nodes.map(node => node.html + node.failureSummary)]))"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_where_people_annotate(staged, open_page, axe, scheme):
    staged.items = [CELLS]
    staged.guess, staged.show_guess = [1, 2, 2], True
    page = open_page(color_scheme=scheme)
    assert violations(page, axe) == []
    press(page, "2", "?")
    assert violations(page, axe) == []
    press(page, "Escape", "Enter")
    expect(page.locator("#done")).to_be_visible()
    assert violations(page, axe) == []
    page.click("#rename")
    assert violations(page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_progress(staged, open_page, axe, scheme):
    staged.progress = PROGRESS
    page = open_page("/progress", color_scheme=scheme)
    expect(page.locator("#fresh")).not_to_be_empty()
    page.click("summary")
    assert violations(page, axe) == []
    staged.progress = None
    page.reload()
    expect(page.locator("#agreement")).to_contain_text("No item")
    assert violations(page, axe) == []


def test_progress_in_words_and_lines(staged, open_page):
    staged.progress = PROGRESS
    page = open_page("/progress")
    for name, words in {
        "error-words": "off by 0.63 grades on average (between 0.57 and 0.70)",
        "agreement": "9 items were answered by several people (12 pairs",
        "anchoring": "was hidden (1 answer)",
    }.items():
        expect(page.locator(f"#{name}")).to_contain_text(words)
    shows(page, "#annotator-rows th", "<b>ann</b>")
    labels = page.locator("svg text").all()[:5]
    heights = {label.text_content(): float(label.get_attribute("y")) for label in labels}
    unit = heights["0"] - heights["1"]
    assert min(heights.values()) >= 0
    last = page.locator("polyline").get_attribute("points").split(" ")[-1].split(",")[1]
    dashes = page.locator("svg .dashes").get_attribute("y1")
    assert (float(last) - float(dashes)) / unit == pytest.approx(0.95 - (0.6 + 1 / 29))


def test_a_refresh_keeps_the_place_and_says_what_is_new(staged, open_page):
    staged.progress = PROGRESS
    page = open_page("/progress", **PHONE)
    expect(page.locator("#fresh")).not_to_be_empty()
    page.evaluate("document.querySelector('details').open = true; scrollTo(0, 700)")
    staged.progress = PROGRESS | {"answers": 58}
    expect(page.locator("#tiles")).to_contain_text("58", timeout=30_000)
    expect(page.locator("details")).to_have_attribute("open", "")
    assert page.evaluate("scrollY") == 700
