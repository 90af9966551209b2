"""Both pages fit a phone and a thumb, and axe-core finds nothing serious, light and dark."""

import pytest
from test_pages_annotate import ready

LIKERT = ["strongly disagree", "disagree", "neither agree nor disagree", "agree", "strongly agree"]
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
        {
            "name": "<b>ann</b>",
            "answers": 40,
            "skips": 1,
            "per_minute": 5.2,
            "range_share": 0.3,
            "mean_width": 1.4,
        }
    ],
    "agreement": {"items": 9, "pairs": 12, "same": 0.44, "meet": 0.89, "gap": 0.22},
    "anchoring": {"shown": {"n": 20, "distance": 0.41}, "hidden": {"n": 1, "distance": 0.83}},
}
EMPTY = {
    "answers": 0,
    "skips": 0,
    "items": 100,
    "items_answered": 0,
    "minutes": 0,
    "per_minute": None,
    "range_share": None,
    "mean_width": None,
    "error": [],
    "best_constant": None,
    "coverage": None,
    "annotators": [],
    "agreement": {"items": 0, "pairs": 0, "same": None, "meet": None, "gap": None},
    "anchoring": {"shown": {"n": 0, "distance": None}, "hidden": {"n": 0, "distance": None}},
}

SMALL = """[...document.querySelectorAll("button, a, summary, [role=slider]")]
  .filter(e => e.checkVisibility() && !e.matches(".skip-link"))
  .map(e => [e.textContent.trim() || e.ariaLabel, e.offsetWidth, e.offsetHeight])
  .filter(([, width, height]) => width < 44 || height < 44)"""
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(params=[["bad", "good"], LIKERT, HUNDRED, ["w" * 200] * 7], ids=len)
def item_page(request, fake, open_page):
    fake.grades, fake.items = request.param, [CELLS]
    fake.guess, fake.show_guess = {"lower": 2, "upper": 2, "grade": 2}, True
    page = open_page(width=360, height=740, touch=True)
    ready(page)
    return page


def test_an_item_fits_a_phone_and_a_thumb(item_page):
    assert item_page.run(WIDTH) == 360  # with the handles at the ends of the scale
    item_page.press("1", "Shift+ArrowRight")
    assert item_page.run(WIDTH) == 360
    assert item_page.run(SMALL) == []
    bottom = "document.querySelector('#give').getBoundingClientRect().bottom <= innerHeight"
    assert item_page.run(bottom)
    item_page.press("s")
    item_page.wait_for("document.querySelector('#done').checkVisibility()")
    assert item_page.run(WIDTH) == 360
    assert item_page.run(SMALL) == []


@pytest.mark.parametrize("seen", [PROGRESS, EMPTY], ids=["data", "empty"])
def test_progress_fits_a_phone_and_a_thumb(fake, open_page, seen):
    fake.progress = seen
    page = open_page("/progress", width=360, height=740, touch=True)
    page.wait_for("document.querySelector('#fresh').innerText")
    assert page.run(WIDTH) == 360
    assert page.run(SMALL) == []


def violations(page, axe):
    page.run(axe + "; 0")
    page.run("Promise.all(document.getAnimations().map(a => a.finished)).then(() => 0)")
    return page.run(
        """axe.run().then(found => found.violations
        .filter(one => ["serious", "critical"].includes(one.impact))
        .map(one => [one.id, one.nodes.map(node => node.html + node.failureSummary)]))"""
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_where_people_annotate(fake, open_page, axe, dark):
    fake.items = [CELLS]
    fake.guess, fake.show_guess = {"lower": 1, "upper": 2, "grade": 2}, True
    page = open_page(dark=dark)
    ready(page)
    assert violations(page, axe) == []
    page.press("2", "?")
    assert violations(page, axe) == []
    page.press("Escape", "Enter")
    page.wait_for("document.querySelector('#done').checkVisibility()")
    assert violations(page, axe) == []
    page.click("#rename")
    assert violations(page, axe) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_in_the_progress(fake, open_page, axe, dark):
    fake.progress = PROGRESS
    page = open_page("/progress", dark=dark)
    page.wait_for("document.querySelector('#fresh').innerText")
    page.click("summary")
    assert violations(page, axe) == []
    fake.progress = EMPTY
    page.reload()
    page.wait_for("document.querySelector('#agreement').innerText.startsWith('No item')")
    assert violations(page, axe) == []


def test_progress_in_words(fake, open_page):
    fake.progress = PROGRESS
    page = open_page("/progress")
    page.wait_for("document.querySelector('#fresh').innerText")
    assert "off by 0.63 grades on average (between 0.57 and 0.70)" in page.text("#error-words")
    assert "9 items were answered by several people (12 pairs" in page.text("#agreement")
    assert "was hidden (1 answer)" in page.text("#anchoring")
    assert page.text("#annotator-rows th") == "<b>ann</b>"


def test_the_line_of_the_chart_goes_through_its_points(fake, open_page):
    fake.progress = PROGRESS
    page = open_page("/progress")
    page.wait_for("document.querySelector('svg .dot') !== null")
    labels = "[...document.querySelectorAll('svg text')].map(t => [t.textContent, t.getAttribute("
    heights = dict(page.run(labels + "'y')]).slice(0, 5)"))
    unit = float(heights["0"]) - float(heights["1"])
    assert min(map(float, heights.values())) >= 0
    line = page.run("document.querySelector('polyline').getAttribute('points')").split(" ")
    last = float(line[-1].split(",")[1])
    dashes = float(page.run("document.querySelector('svg .dashes').getAttribute('y1')"))
    assert (last - dashes) / unit == pytest.approx(0.95 - (0.6 + 1 / 29))


def test_a_refresh_keeps_the_place_and_says_what_is_new(fake, open_page):
    fake.progress = PROGRESS
    page = open_page("/progress", hurry=10, width=360, height=740, touch=True)
    page.wait_for("document.querySelector('#fresh').innerText")
    page.run("document.querySelector('details').open = true; scrollTo(0, 700); 0")
    fake.progress = PROGRESS | {"answers": 58}
    page.wait_for("document.querySelector('#tiles').innerText.includes('58')")
    assert page.run("document.querySelector('details').open")
    assert page.run("scrollY") == 700
