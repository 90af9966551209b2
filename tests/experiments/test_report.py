"""The report holds what the table holds, opens offline, and works in a real browser."""

import json
import re
from itertools import chain

import numpy as np
import pytest
from fake_results import MAIN, fake_results

from ordspan.experiments.claims import count_verdicts, make_claims
from ordspan.experiments.report import write_report
from ordspan.experiments.summary import summary_rows
from standalone import check_stands_alone, try_page

CURVES = (*MAIN, "PA average")
TRY_EVERYTHING = """
const panels = [...document.querySelectorAll(".panel")];
const drawn = () => panels.map(panel => count(".scatterlayer .trace", panel));
const click = async element => { element.click(); await settle(); };
async function choose(selector, value) {
  const select = document.querySelector(selector);
  select.value = value;
  select.dispatchEvent(new Event("change"));
  await settle();
}
async function tryEverything() {
  await settle();
  const found = { drawn: drawn(), ids: panels.map(panel => panel.id), toggles: {} };
  for (const box of document.querySelectorAll("input[data-algorithm]")) {
    const steps = [drawn()];
    const trajectories = [count(".trajectory .trace")];
    for (let i = 0; i < 2; i++) {
      await click(box);
      steps.push(drawn());
      trajectories.push(count(".trajectory .trace"));
    }
    found.toggles[box.dataset.algorithm] = { panels: steps, trajectories };
  }
  const types = () => panels.map(panel => panel.layout.xaxis.type);
  found.axes = [types()];
  for (let i = 0; i < 2; i++) {
    await click(document.getElementById("axis-switch"));
    found.axes.push(types());
  }
  await choose("select[data-table=claims][data-key=verdict]", "holds");
  found.holding = count("#claims tr[data-verdict]:not([hidden])");
  await choose("#trajectory-dataset", "synthetic");
  found.trajectories = count(".trajectory .scatterlayer .trace");
  return found;
}
"""


@pytest.fixture(scope="module")
def results():
    return fake_results(datasets=("california", "synthetic"), algorithms=CURVES, trials=500)


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    path = write_report(results, tmp_path_factory.mktemp("report"), seconds=12.34)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


@pytest.fixture(scope="module", params=[500, 1400], ids=["narrow", "wide"])
def outcome(browser, page, request):
    """What a browser saw when every control of the report was tried."""
    return try_page(browser, page, TRY_EVERYTHING, request.param)


def test_the_page_stands_alone(page):
    check_stands_alone(page)


def test_curves_agree_with_the_errors(results, data):
    for panel in data["panels"]:
        for trace in panel["traces"]:
            if trace["name"] == "true model" or panel["figure"] == "regret":
                continue
            labels = int(panel["labels"] if panel["figure"] == 1 else trace["name"][-3:-1])
            cell = (panel["dataset"], labels, trace["legendgroup"])
            errors = results.errors(cell, interval=panel["figure"] == 2).astype(float)
            running = errors.cumsum(axis=1) / np.arange(1, errors.shape[1] + 1)
            places = np.array(trace["x"]) - 1
            np.testing.assert_allclose(trace["y"], running.mean(axis=0)[places], atol=1e-5)
            sem = running.std(axis=0, ddof=1) / np.sqrt(len(running))
            np.testing.assert_allclose(trace["customdata"], sem[places], atol=1e-5)


def test_regret_panels_show_the_losses_the_fixed_ranker_and_the_bound(results, data):
    panels = [panel for panel in data["panels"] if panel["figure"] == "regret"]
    assert [(p["dataset"], p["labels"]) for p in panels] == [
        ("california", "0"),
        ("synthetic", "0"),
    ]
    for panel in panels:
        lines = {trace["name"]: trace for trace in panel["traces"]}
        curves = [name for name in CURVES if name != "MCP"]
        assert list(lines) == ["bound for PA-I", *curves, "best fixed ranker"]
        assert panel["layout"]["xaxis"]["type"] == panel["layout"]["yaxis"]["type"] == "log"
        for name in (*curves, "best fixed ranker"):
            algorithm = "hindsight" if name == "best fixed ranker" else name
            trials, losses = results.losses((panel["dataset"], 0, algorithm))
            assert lines[name]["x"] == trials[losses > 0].tolist()
            np.testing.assert_allclose(lines[name]["y"], losses[losses > 0])
        _, bounds = results.bounds((panel["dataset"], 0, "PA-I"))
        np.testing.assert_allclose(lines["bound for PA-I"]["y"], bounds)


def test_thresholds_are_those_of_the_first_run(results, data):
    assert len(data["trajectories"]) == 2 * 3 * 5  # all but MCP, which has none
    for entry in data["trajectories"]:
        cell = (entry["dataset"], entry["labels"], entry["algorithm"])
        trials, thresholds = results.trajectory(cell)
        for trace, column in zip(entry["traces"], thresholds.T, strict=True):
            assert trace["x"] == trials.tolist()
            np.testing.assert_allclose(trace["y"], column, atol=1e-5)


def claims_of(page):
    """Sentence by sentence, data set, labels, algorithm, link and verdict of the claims."""
    table = re.search(r'<table id="claims">(.*?)</table>', page, re.DOTALL)[1]
    rows = r'<tr data-dataset="(\w+)" data-verdict="([a-z ]+)">(.*?)</tr>'
    return [
        [
            (dataset, verdict, *re.findall("<td>(.*?)</td>", cells))
            for dataset, verdict, cells in re.findall(rows, part)
        ]
        for part in table.split("<tbody>")[1:]
    ]


def test_every_claim_links_to_the_panel_of_its_curves(page, data):
    panels = {panel["id"]: panel for panel in data["panels"]}
    for dataset, verdict, _, labels, algorithm, rival, _, _, link, _ in chain(*claims_of(page)):
        if link == "–":
            assert verdict == "not run"
            continue
        place, figure = re.fullmatch(r'<a href="#(.*)">figure (\d)</a>', link).groups()
        assert f'id="{place}"' in page
        panel = panels[place]
        assert (panel["figure"], panel["dataset"]) == (int(figure), dataset)
        assert ("itself" in rival) == (figure == "2")
        fraction = labels.removesuffix(" %").replace("exact", "0")
        name = algorithm if figure == "1" else f"{algorithm}, {fraction}%"
        assert fraction in panel["labels"].split()
        assert name in {trace["name"] for trace in panel["traces"]}


def test_tables_are_whole(results, page):
    claims = make_claims(results)
    for verdict, number in count_verdicts(claims).items():
        assert page.count(f'data-verdict="{verdict}"><td>') == number
    for row in summary_rows(results):
        assert f"<td>{row.mae:.4f}</td><td>{row.sem:.4f}</td><td>{row.interval_mae:.4f}" in page
        assert f"<td>{row.runs}</td><td>{row.hindsight_ratio:.3f}</td></tr>" in page
    assert "both on the first 2 runs" in page


def test_settings_are_told_in_words(page):
    for words in (
        "<dt>Seconds taken</dt><dd>12.3</dd>",
        "the C of the grid with the lowest error",
        "made up for the tests &lt;california&gt; (5 grades)",
        "<dt>MSLR</dt><dd>not fetched; fetch it &amp; try</dd>",
        f"numpy {np.__version__}",
    ):
        assert words in page


def test_same_table_gives_the_same_bytes(tmp_path):
    pages = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        pages.append(write_report(fake_results(), tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize("options", [{"runs": 1}, {"fractions": (0,)}, {"algorithms": ("MCP",)}])
def test_small_tables_make_a_report_too(options, tmp_path):
    assert write_report(fake_results(datasets=("mslr",), **options), tmp_path).exists()


def test_the_browser_has_nothing_to_complain_about(outcome):
    assert outcome["problems"] == []
    assert outcome["requests"] == []
    assert outcome["overflow"] == 0


def test_every_panel_is_drawn(outcome):
    assert len(outcome["ids"]) == len(set(outcome["ids"])) == 2 * 3 + 2 + 2
    # a band for each of the five main curves; the extra curve has none, the synthetic one a truth
    # cumulative losses: all curves but MCP, the best fixed ranker and the bound
    assert outcome["drawn"] == [11] * 3 + [12] * 3 + [12] * 2 + [7] * 2


def test_checkboxes_hide_and_show_a_curve_everywhere(outcome):
    assert list(outcome["toggles"]) == list(CURVES)
    for name, seen in outcome["toggles"].items():
        before, hidden, after = seen["panels"]
        main, proposed = (2 if name in MAIN else 1), (4 if name.startswith("PA") else 0)
        losses = {"MCP": 0, "PA-I": 2}.get(name, 1)  # PA-I's bound goes with it
        gone = [main] * 6 + [proposed if name in MAIN else 0] * 2 + [losses] * 2
        assert [b - h for b, h in zip(before, hidden, strict=True)] == gone
        assert after == before
        thresholds = 0 if name == "MCP" else 4
        all_of_them, fewer, again = seen["trajectories"]
        assert (all_of_them - fewer, again) == (thresholds, all_of_them)


def test_the_button_switches_all_axes_but_those_of_the_losses(outcome):
    assert all(types[-2:] == ["log", "log"] for types in outcome["axes"])
    linear, log, back = (types[:-2] for types in outcome["axes"])
    assert set(linear) == set(back) == {"linear"}
    assert set(log) == {"log"}


def test_tables_and_thresholds_can_be_chosen(outcome, results):
    assert outcome["holding"] == count_verdicts(make_claims(results))["holds"]
    assert outcome["trajectories"] == 5 * 4
