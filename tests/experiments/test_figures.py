"""The figures show the curves of the table, arranged as in the paper."""

import numpy as np
import pytest
from fake_results import EXTRA, MAIN, fake_results

from ordspan.experiments.figures import LOOKS, look_of, make_panels, one_panel, write_figures
from ordspan.experiments.protocol import CITED_ALGORITHMS
from ordspan.experiments.results import Cell


def axes_by_title(panels):
    return {panel.title: one_panel(panel).axes[0] for panel in panels}


def curves_of(panel):
    return {line.get_label(): line for line in panel.get_lines()}


@pytest.fixture(scope="module")
def results():
    return fake_results(datasets=("abalone", "mslr"), trials=1000)


@pytest.fixture(scope="module")
def first(results):
    return axes_by_title(make_panels(results)["figure1"])


@pytest.fixture(scope="module")
def second(results):
    return axes_by_title(make_panels(results)["figure2"])


def test_panels_are_arranged_as_in_the_paper(first, second):
    kinds = ("exact", "50% partial", "75% partial")
    assert list(first) == [
        f"{name} ({kind} labels)" for name in ("Abalone", "MSLR") for kind in kinds
    ]
    assert len({panel.get_ylim() for panel in list(first.values())[:3]}) == 1
    assert list(second) == [f"{name} (50% and 75% partial labels)" for name in ("Abalone", "MSLR")]


def test_curves_are_the_running_errors_with_bands_of_one_standard_error(results, first, second):
    for dataset, title in (("abalone", "Abalone"), ("mslr", "MSLR")):
        panel = first[f"{title} (50% partial labels)"]
        assert list(curves_of(panel)) == list(MAIN)
        for (name, line), band in zip(curves_of(panel).items(), panel.collections, strict=True):
            sums = results.rows[Cell(dataset, 50, name)]["error_sums"] / results.trials
            mean, sem = sums.mean(axis=0), sums.std(axis=0, ddof=1) / 2
            np.testing.assert_array_equal(line.get_xdata(), results.trials)
            np.testing.assert_allclose(line.get_ydata(), mean)
            heights = band.get_paths()[0].vertices[:, 1]
            extremes = (mean - sem).min(), (mean + sem).max()
            assert (heights.min(), heights.max()) == pytest.approx(extremes)
        lines = curves_of(second[f"{title} (50% and 75% partial labels)"])
        assert set(lines) == {f"{name}, {labels}%" for name in MAIN[:3] for labels in (50, 75)}
        sums = results.rows[Cell(dataset, 75, "PA-II")]["interval_error_sums"]
        expected = (sums / results.trials).mean(axis=0)
        np.testing.assert_allclose(lines["PA-II, 75%"].get_ydata(), expected)


def test_dashes_mean_the_same_in_both_figures(first, second):
    lines = curves_of(first["MSLR (50% partial labels)"])
    for name, line in curves_of(second["MSLR (50% and 75% partial labels)"]).items():
        algorithm, fraction = name.split(", ")
        assert line._dash_pattern == lines[algorithm]._dash_pattern
        assert (line.get_markerfacecolor() == "white") == (fraction == "75%")


def test_curves_differ_without_colours():
    names = (*MAIN, *CITED_ALGORITHMS, *EXTRA)
    looks = {(look_of(name)["linestyle"], LOOKS[name.split()[0]][2]) for name in names}
    assert len(looks) == len(names)


def test_regret_shows_the_losses_the_fixed_ranker_and_the_bound(results):
    panels = axes_by_title(make_panels(results)["regret"])
    assert list(panels) == ["Abalone (exact labels)", "MSLR (exact labels)"]
    lines = curves_of(panels["MSLR (exact labels)"])
    assert list(lines) == ["PA-I bound", "PA", "PA-I", "PA-II", "PRank", "hindsight"]
    for name, line in lines.items():
        algorithm, _, bound = name.partition(" ")
        row = results.rows[Cell("mslr", 0, algorithm)]
        expected = row["bounds" if bound else "losses"]
        np.testing.assert_allclose(line.get_ydata(), expected[expected > 0])


def test_thresholds_are_those_of_the_first_run(results):
    panels = axes_by_title(make_panels(results)["thresholds"])
    names = [name for name in MAIN if name != "MCP"]  # which has none
    assert list(panels) == [f"{title}: {name}" for title in ("Abalone", "MSLR") for name in names]
    drawn = [line.get_ydata() for line in panels["MSLR: PRank"].get_lines()]
    expected = results.rows[Cell("mslr", 0, "PRank")]["thresholds"].T
    np.testing.assert_array_equal(drawn, expected)


def test_the_true_model_is_drawn_where_it_is_known():
    results = fake_results(datasets=("mslr", "synthetic"))
    panels = axes_by_title(make_panels(results)["figure1"])
    assert "true model" not in curves_of(panels["MSLR (exact labels)"])
    line = curves_of(panels["Synthetic (exact labels)"])["true model"]
    assert set(line.get_ydata()) == {0.4}


def test_same_table_gives_the_same_files(tmp_path):
    curves = (*MAIN, *EXTRA)
    results = fake_results(datasets=("synthetic",), algorithms=curves, fractions=(50,))
    files = [f"figure{n}.{kind}" for n in (1, 2) for kind in ("png", "pdf")]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_figures(results, make_panels(results), tmp_path / name)
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == sorted(files)
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_small_tables_make_small_figures(tmp_path):
    results = fake_results(runs=1, trials=3, fractions=(0,))
    write_figures(results, make_panels(results), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure1.pdf", "figure1.png"]
