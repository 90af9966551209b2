"""The figures show the curves of the table, arranged as in the paper."""

import numpy as np
import pytest
from fake_results import EXTRA, MAIN, fake_results

from ordspan.experiments.figures import (
    draw_figure1,
    draw_figure2,
    figure1,
    figure2,
    look_of,
)
from ordspan.experiments.protocol import CITED_ALGORITHMS


def running_mean(results, cell, interval=False):
    errors = results.errors(cell, interval=interval).astype(float)
    return (errors.cumsum(axis=1) / np.arange(1, errors.shape[1] + 1)).mean(axis=0)


def curves_of(panel):
    return {line.get_label(): line for line in panel.get_lines()}


@pytest.fixture(scope="module")
def panels1():
    return draw_figure1(fake_results()).axes


@pytest.fixture(scope="module")
def panels2():
    return draw_figure2(fake_results()).axes


def test_panels_are_arranged_as_in_the_paper(panels1, panels2):
    titles = [panel.get_title() for panel in panels1]
    assert len(titles) == 12
    assert titles[:3] == [
        "California (exact labels)",
        "California (50% partial labels)",
        "California (75% partial labels)",
    ]
    assert len({panel.get_ylim() for panel in panels1[:3]}) == 1
    assert panels2[0].get_title() == "California (50% and 75% partial labels)"
    assert len(panels2) == 4
    assert set(curves_of(panels2[0])) == {f"{a}, {f}%" for a in MAIN[:3] for f in (50, 75)}


def test_figure1_draws_the_running_mean():
    results = fake_results(trials=1000, datasets=("abalone",))
    panel = draw_figure1(results).axes[1]  # 50 %
    for name, line in curves_of(panel).items():
        expected = running_mean(results, ("abalone", 50, name))
        trials = np.asarray(line.get_xdata())
        np.testing.assert_allclose(line.get_ydata(), expected[trials - 1])


def test_figure2_draws_errors_against_the_intervals(panels2):
    line = curves_of(panels2[3])["PA-II, 75%"]
    expected = running_mean(fake_results(), ("mslr", 75, "PA-II"), interval=True)
    np.testing.assert_allclose(line.get_ydata(), expected[np.asarray(line.get_xdata()) - 1])


def test_bands_are_one_standard_error_wide():
    results = fake_results(algorithms=("PA",), fractions=(0,), datasets=("mslr",))
    (panel,) = draw_figure1(results).axes
    (band,) = panel.collections
    _, sem = results.curve(("mslr", 0, "PA"))
    low, high = (
        getattr(band.get_paths()[0].vertices[:, 1], extreme)() for extreme in ("min", "max")
    )
    mean = running_mean(results, ("mslr", 0, "PA"))
    assert low == pytest.approx((mean - sem).min())
    assert high == pytest.approx((mean + sem).max())


def test_dashes_mean_the_same_in_both_figures(panels1, panels2):
    first, second = curves_of(panels1[1]), curves_of(panels2[0])
    for name, line in second.items():
        algorithm, fraction = name.split(", ")
        assert line._dash_pattern == first[algorithm]._dash_pattern
        assert (line.get_markerfacecolor() == "white") == (fraction == "75%")


def test_curves_differ_without_colours():
    looks = [look_of(name)[1:] for name in (*MAIN, *CITED_ALGORITHMS, *EXTRA)]
    assert len(set(looks)) == len(looks)


def test_the_true_model_is_drawn_where_it_is_known():
    panels = draw_figure1(fake_results(datasets=("mslr", "synthetic"))).axes
    assert "true model" not in curves_of(panels[0])
    assert set(curves_of(panels[3])["true model"].get_ydata()) == {0.4}


def test_smaller_tables_make_smaller_figures(tmp_path):
    assert len(draw_figure1(fake_results(datasets=("abalone",))).axes) == 3
    assert len(draw_figure1(fake_results(runs=1, trials=3)).axes) == 12
    assert figure2(fake_results(fractions=(0,)), tmp_path) == []  # without ranges


def test_same_table_gives_the_same_files(tmp_path):
    written = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        curves = (*MAIN, *EXTRA)
        results = fake_results(datasets=("synthetic",), algorithms=curves, fractions=(50,))
        written.append(figure1(results, folder) + figure2(results, folder))
    names = [path.name for path in written[0]]
    assert names == [f"figure{n}.{kind}" for n in (1, 2) for kind in ("png", "svg", "pdf")]
    for one, two in zip(*written, strict=True):
        assert one.read_bytes() == two.read_bytes()
