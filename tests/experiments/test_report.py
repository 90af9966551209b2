"""Figures and page show the table, arranged as in the paper; the page works in a real browser."""

import re

import numpy as np
import pytest
from fake_results import EXTRA, MAIN, fake_results

from ordspan.experiments.claims import count_verdicts, make_claims
from ordspan.experiments.report import make_panels, one_panel, report_page
from ordspan.experiments.results import Cell
from standalone import check_stands_alone, try_page
from tables import said

# figures


def panels_of(results, figure):
    """The axes of a figure by their titles."""
    return {panel.title: one_panel(panel).axes[0] for panel in make_panels(results)[figure]}


def curves_of(axes):
    return {line.get_label(): line for line in axes.get_lines()}


@pytest.fixture(scope="module")
def two():
    return fake_results(datasets=("abalone", "mslr"), trials=1000)


def test_curves_are_the_running_errors_with_bands_of_one_standard_error(two):
    axes = panels_of(two, "figure1")["MSLR (50% partial labels)"]
    assert list(curves_of(axes)) == list(MAIN)
    for (name, line), band in zip(curves_of(axes).items(), axes.collections, strict=True):
        sums = two.rows[Cell("mslr", 50, name)]["error_sums"] / two.trials
        mean, sem = sums.mean(axis=0), sums.std(axis=0, ddof=1) / 2
        np.testing.assert_array_equal(line.get_xdata(), two.trials)
        np.testing.assert_allclose(line.get_ydata(), mean)
        trials, heights = band.get_paths()[0].vertices.T
        places = np.searchsorted(two.trials, trials)
        np.testing.assert_allclose(np.abs(heights - mean[places]), sem[places])
    lines = curves_of(panels_of(two, "figure2")["MSLR (50% and 75% partial labels)"])
    assert set(lines) == {f"{name}, {labels}%" for name in MAIN[:3] for labels in (50, 75)}
    sums = two.rows[Cell("mslr", 75, "PA-II")]["interval_error_sums"]
    np.testing.assert_allclose(lines["PA-II, 75%"].get_ydata(), (sums / two.trials).mean(axis=0))


def test_regret_shows_the_losses_the_fixed_ranker_and_the_bound(two):
    panels = panels_of(two, "regret")
    assert list(panels) == ["Abalone (exact labels)", "MSLR (exact labels)"]
    lines = curves_of(panels["MSLR (exact labels)"])
    assert list(lines) == ["PA-I bound", "PA", "PA-I", "PA-II", "PRank", "hindsight"]
    for label, line in lines.items():
        name, _, bound = label.partition(" ")
        expected = two.rows[Cell("mslr", 0, name)]["bounds" if bound else "losses"]
        np.testing.assert_allclose(line.get_ydata(), expected[expected > 0])


def test_thresholds_are_those_of_the_first_run(two):
    panels = panels_of(two, "thresholds")
    names = [name for name in MAIN if name != "MCP"]  # which has none
    assert list(panels) == [f"{title}: {name}" for title in ("Abalone", "MSLR") for name in names]
    drawn = [line.get_ydata() for line in panels["MSLR: PRank"].get_lines()]
    np.testing.assert_array_equal(drawn, two.rows[Cell("mslr", 0, "PRank")]["thresholds"].T)


# the page

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


@pytest.fixture(scope="module")
def results():
    return fake_results(
        datasets=("california", "synthetic"), algorithms=(*MAIN, "PA average"), trials=500
    )


@pytest.fixture(scope="module")
def page(results):
    return report_page(results, make_panels(results), make_claims(results), results.summary())


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


def test_every_claim_links_to_the_panel_of_its_curves(results, page):
    rows = re.findall(r'<tr data-dataset="(\w+)" data-verdict="([a-z ]+)">(.*?)</tr>', page)
    assert len(rows) == len(make_claims(results))
    for dataset, verdict, cells in rows:
        _, labels, compared, _, _, link, _ = re.findall("<td>(.*?)</td>", cells)
        if link == "–":
            assert verdict == "not run"
            continue
        place, figure = re.fullmatch(r'<a href="#(.*)">figure (\d)</a>', link).groups()
        assert f'<figure id="{place}"' in page
        assert ("itself" in compared) == (figure == "2")
        fraction = labels.removesuffix(" %").replace("exact", "0")
        assert place == (f"figure1-{dataset}-{fraction}" if figure == "1" else f"figure2-{dataset}")


def test_tables_are_whole(results, page):
    for verdict, number in count_verdicts(make_claims(results)).items():
        assert page.count(f'data-verdict="{verdict}"><td>') == number
    for row in results.summary():
        errors = (f"<td>{row[name]:.4f}</td>" for name in ("mae", "sem", "interval_mae"))
        assert "".join(errors) in page
        assert f"<td>{row['runs']}</td><td>{row['hindsight_ratio']:.3f}</td><td>" in page
    assert "both on the first 2 runs" in page


@pytest.mark.parametrize(
    ("options", "figures"),
    [
        ({"algorithms": (*MAIN, *EXTRA), "fractions": (50,)}, ("figure1", "figure2")),
        ({"runs": 1, "trials": 3, "fractions": (0,)}, ("figure1",)),
        ({"algorithms": ("MCP",), "trials": 5, "fractions": (0, 50)}, ("figure1",)),
    ],
)
def test_small_tables_are_drawn_too(tmp_path, options, figures):
    fake_results(datasets=("synthetic",), **options).save(tmp_path / "results.npz")
    said("reproduce", "--report-only", tmp_path)
    drawn = {f"{name}.{kind}" for name in figures for kind in ("png", "pdf")}
    assert {path.name for path in tmp_path.glob("figure*")} == drawn
    assert "</html>" in (tmp_path / "report.html").read_text("utf-8")
