"""The page holds what the table holds, opens offline, and works in a real browser."""

import re
from itertools import chain

import numpy as np
import pytest
from fake_results import MAIN, fake_results

from ordspan.experiments.claims import count_verdicts, make_claims
from ordspan.experiments.figures import make_panels
from ordspan.experiments.report import report_page
from standalone import check_stands_alone, try_page

CURVES = (*MAIN, "PA average")
TRY_EVERYTHING = """
const all = selector => [...document.querySelectorAll(selector)];
const shown = selector => all(selector).filter(e => e.getClientRects().length).length;
async function choose(selector, value) {
  const select = document.querySelector(selector);
  select.value = value;
  select.dispatchEvent(new Event("change"));
  await settle();
}
async function tryEverything() {
  await settle();
  const found = { panels: shown("figure svg"), ids: all("[id]").map(e => e.id) };
  found.ink = getComputedStyle(document.body).color;
  found.fill = getComputedStyle(all("figure svg text")[0]).fill;
  await choose("select[data-of=claims][data-key=verdict]", "holds");
  found.holding = shown("#claims tr[data-verdict]");
  await choose("select[data-of=claims][data-key=dataset]", "synthetic");
  found.holdingThere = shown("#claims tr[data-verdict]");
  await choose("select[data-of=summary]", "synthetic");
  found.summary = shown("#summary tbody tr");
  await choose("select[data-of=thresholds]", "synthetic");
  found.thresholds = shown("#thresholds figure");
  return found;
}
"""


def page_of(results):
    return report_page(results, make_panels(results), make_claims(results), results.summary())


@pytest.fixture(scope="module")
def results():
    return fake_results(datasets=("california", "synthetic"), algorithms=CURVES, trials=500)


@pytest.fixture(scope="module")
def page(results):
    return page_of(results)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_it_works_in_a_browser(browser, page, results, width, scheme):
    found = try_page(browser, page, TRY_EVERYTHING, width, color_scheme=scheme)
    assert found["problems"] == []
    assert found["requests"] == []
    assert found["overflow"] == 0
    assert found["panels"] == 2 * 3 + 2 + 2 + 2 * 5
    assert len(found["ids"]) == len(set(found["ids"]))
    assert found["fill"] == found["ink"]  # the text of a figure can be read where the page can
    assert found["holding"] == count_verdicts(make_claims(results))["holds"]
    assert found["holdingThere"] == 0  # the paper has no such data set
    assert found["summary"] == 3 * 6
    assert found["thresholds"] == 5  # all but MCP


def test_the_page_stands_alone(page):
    check_stands_alone(page)


def test_every_figure_is_described_and_keeps_its_numbers(page):
    figures = re.findall(r'<figure id="(.*?)".*?<svg role="img" aria-label="(.*?)"', page)
    assert len(figures) == 20
    assert (
        "figure1-california-50",
        "California (50% partial labels): average MAE over the trials",
    ) in figures
    (first,) = re.findall(r'<figure id="figure1-california-0".*?</figure>', page, re.DOTALL)
    heights = [float(text) for text in re.findall(r">(\d\.\d+)</text>", first)]
    assert len(heights) > 3
    np.testing.assert_allclose(np.diff(heights, 2), 0, atol=1e-9)  # evenly spaced: not rounded


def claims_of(page):
    """Data set, verdict and cells of the claims, sentence by sentence."""
    table = re.search(r'<table id="claims">(.*?)</table>', page, re.DOTALL)[1]
    rows = r'<tr data-dataset="(\w+)" data-verdict="([a-z ]+)">(.*?)</tr>'
    return [
        [
            (dataset, verdict, *re.findall("<td>(.*?)</td>", cells))
            for dataset, verdict, cells in re.findall(rows, part)
        ]
        for part in table.split("<tbody>")[1:]
    ]


def test_every_claim_links_to_the_panel_of_its_curves(page):
    for dataset, verdict, _, labels, _, rival, _, _, link, _ in chain(*claims_of(page)):
        if link == "–":
            assert verdict == "not run"
            continue
        place, figure = re.fullmatch(r'<a href="#(.*)">figure (\d)</a>', link).groups()
        assert f'<figure id="{place}"' in page
        assert ("itself" in rival) == (figure == "2")
        fraction = labels.removesuffix(" %").replace("exact", "0")
        assert place == (f"figure1-{dataset}-{fraction}" if figure == "1" else f"figure2-{dataset}")


def test_tables_are_whole(results, page):
    for verdict, number in count_verdicts(make_claims(results)).items():
        assert page.count(f'data-verdict="{verdict}"><td>') == number
    for row in results.summary():
        errors = (f"<td>{row[name]:.4f}</td>" for name in ("mae", "sem", "interval_mae"))
        assert "".join(errors) in page
        assert f"<td>{row['runs']}</td><td>{row['hindsight_ratio']:.3f}</td></tr>" in page
    assert "both on the first 2 runs" in page


def test_settings_are_told_in_words(page):
    for words in (
        "<dt>trials</dt><dd>500</dd>",
        "the C of the grid with the lowest error",
        "california: made up for the tests &lt;california&gt;",
        "mslr: not fetched; fetch it &amp; try</dd>",
        f"numpy: {np.__version__}",
    ):
        assert words in page


def test_same_table_gives_the_same_page():
    one, two = (page_of(fake_results(datasets=("mslr",), trials=50)) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("options", [{"runs": 1}, {"fractions": (0,)}, {"algorithms": ("MCP",)}])
def test_small_tables_make_a_page_too(options):
    assert "</html>" in page_of(fake_results(datasets=("mslr",), trials=5, **options))
