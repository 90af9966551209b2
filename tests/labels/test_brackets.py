"""Brackets of amounts as ranges of bands, against the definition."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ordspan import OrdinalPA, brackets

INF = np.inf


def naive_bands(labels, least=5):
    """Ranks of brackets with whole ends: every amount is a cell, and alike neighbours are one.

    Neighbours are told apart if enough labels hold only one of them, and if some label lies on
    either side.
    """
    ends = [int(end) for label in labels for end in label if np.isfinite(end)]
    amounts = range(min(ends) - 1, max(ends) + 2)
    holds = [{x for x in amounts if low <= x < high or x == low} for low, high in labels]
    rank = {amounts[0]: 1}
    for x, after in pairwise(amounts):
        at_edge = sum(
            (x in held) != (after in held) and low < high
            for held, (low, high) in zip(holds, labels, strict=True)
        )
        has_sides = any(max(h) <= x for h in holds) and any(min(h) >= after for h in holds)
        rank[after] = rank[x] + (at_edge >= least and has_sides)
    return [(rank[min(held)], rank[max(held)]) for held in holds]


@pytest.mark.parametrize("seed", range(30))
def test_brackets_are_the_cells_that_labels_tell_apart(seed):
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(40, 7, replace=False))
    labels = []
    for _ in range(60):
        low, high = np.sort(rng.choice([-INF, *cuts, INF], 2, replace=rng.random() < 0.1))
        if np.isfinite(low) or low < high:
            labels.append((float(low), float(high)))
    labels += [(-INF, float(cuts[2])), (float(cuts[3]), INF)]
    lower, upper = zip(*labels, strict=True)
    has_rare = naive_bands(labels) != naive_bands(labels, least=1)
    with pytest.warns(UserWarning, match="left out") if has_rare else nullcontext():
        y, classes = brackets(lower, upper)
    rank = {name: k for k, name in enumerate(classes.tolist(), 1)}
    assert [(rank[a], rank[b]) for a, b in y.tolist()] == naive_bands(labels)
    assert len(classes) == max(high for _, high in naive_bands(labels))


@pytest.mark.parametrize(
    "as_one",
    [
        pd.DataFrame,
        pl.DataFrame,
        lambda ends: pd.DataFrame(ends).to_numpy(),
        lambda ends: list(zip(*ends.values(), strict=True)),
        lambda ends: pd.arrays.IntervalArray.from_arrays(*ends.values(), closed="left"),
    ],
)
def test_two_columns_may_come_as_one(as_one):
    ends = {"from": [10.0, -INF, 25.0] * 5, "to": [25.0, 10.0, INF] * 5}
    for found, expected in zip(brackets(as_one(ends)), brackets(*ends.values()), strict=True):
        assert found.tolist() == expected.tolist()


def test_an_interval_array_is_of_brackets_or_of_grades():
    half_open, from_cut, closed = (
        pd.arrays.IntervalArray.from_breaks([1, 2, 3], s) for s in ("left", "right", "both")
    )
    for intervals in (from_cut, pd.cut([1.5, 2.5, np.nan], [1, 2, 3]), pd.Series(from_cut)):
        with pytest.warns(UserWarning, match="closed on the right.*right=False"):
            y, _ = brackets(intervals, edges=[2])
        assert y[:2].tolist() == [["under 2"] * 2, ["2 or more"] * 2]
    with pytest.raises(ValueError, match=r"ordspan\.brackets"):
        OrdinalPA().fit(np.zeros((2, 1)), half_open)
    with pytest.raises(ValueError, match="closed on both sides"):
        brackets(closed)


@pytest.mark.parametrize(
    ("edges", "names"),
    [
        ([10_000, 75_000, 1_500_000], ["under 10k", "10k to 75k", "75k to 1.5m", "1.5m or more"]),
        (["2,500", "$25k"], ["under 2.5k", "2.5k to 25k", "25k or more"]),
        ([18, 30], ["under 18", "18 to 30", "30 or more"]),
        ([1990, 2000], ["under 1990", "1990 to 2000", "2000 or more"]),
        ([3.4, 3.8], ["under 3.4", "3.4 to 3.8", "3.8 or more"]),
        ([24_999, 50_000], ["under 24999", "24999 to 50000", "50000 or more"]),
        ([-5, 0], ["under -5", "-5 to 0", "0 or more"]),
    ],
)
def test_bands_are_named_in_the_users_units(edges, names):
    classes = brackets([1, 2], [1, 2], edges=edges)[1]
    assert classes.tolist() == names
    y = brackets(names, edges=edges)[0]  # names are brackets themselves
    assert y.tolist() == [[name, name] for name in names]


def random_edges():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        digits = rng.integers(-2, 8)
        yield np.unique((rng.normal(0, 10.0**digits, 8)).round(3 - digits))


@pytest.mark.parametrize(
    "edges",
    [
        *random_edges(),
        *(np.arange(n, n + 50) * step + 1e4 for step in (1e2, 1e5) for n in range(1, 2000, 50)),
    ],
)
def test_names_of_bands_hold_their_edges(edges):
    exact, classes = brackets(list(map(repr, edges.tolist())), edges=edges)
    assert exact.tolist() == [[name, name] for name in classes[1:].tolist()]
    below = brackets([f"under {edge!r}" for edge in edges.tolist()], edges=edges)[0]
    assert below[:, 1].tolist() == classes[:-1].tolist()


def test_a_bracket_that_ends_between_edges_is_widened_and_never_narrowed():
    with pytest.warns(UserWarning, match="widened to them: 1 of 3"):
        y, _ = brackets([10, 12, None], [25, 20, 10], edges=[10, 15, 25])
    assert y.tolist() == [["10 to 15", "15 to 25"]] * 2 + [["under 10"] * 2]


def test_an_edge_of_few_labels_is_left_out_with_a_warning():
    lower, upper = [None] * 6 + [10] * 6 + [7], [10] * 6 + [None] * 6 + [12]
    with pytest.warns(UserWarning, match=r"widen to the next edge: 12 \(1\), 20 \(2\)"):
        y, classes = brackets(lower + [20] * 2, upper + [None] * 2)
    assert classes.tolist() == ["under 10", "10 or more"]
    assert y[12].tolist() == ["under 10", "10 or more"]


def test_more_than_60_bands_need_edges():
    lower = np.repeat(np.arange(80), 5)
    with pytest.raises(ValueError, match=r"80 bands, but 2 to 60 .* edges="):
        brackets(lower, lower + 1)
    with pytest.raises(ValueError, match="81 bands, but 2 to 60"):
        brackets(lower, lower + 1, edges=range(80))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([10, 30], [20, 25]), "row 1: lower 30 is above upper 25"),
        (([10, 30], [20]), r"shapes \(2,\), \(1,\)"),
        ((["a"], ["b"]), "could not convert string to float: 'a'"),
        ((["< 18", "18+"] * 5 + ["high"],), "row 10: label 'high': not a bracket"),
        ((["< 18", "18+"] * 5 + ["30-20"],), "row 10: label '30-20': the lower end"),
        ((["< 18", "18+"] * 5 + ["Don't know"],), r"Don't know.* \(1 row\)"),
        (([10] * 9, [None] * 9), "no amount separates"),
    ],
)
def test_what_is_no_bracket_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        brackets(*arguments)


WRITTEN = {
    "five bands": (
        ["$0 - $24,999", "$25,000 - $49,999", "$50,000 - $99,999", "$100K – $149,999", "$150,000+"],
        ["under 25k", "25k to 50k", "50k to 100k", "100k to 150k", "150k or more"],
    ),
    "four bands": (
        ["Less than $40k", "$40-75k", "$75—125k", "$125k or more"],
        ["under 40k", "40k to 75k", "75k to 125k", "125k or more"],
    ),
    "pandas.cut": (["(18, 30]", "(30, 45]", "(45, inf]"], ["under 30", "30 to 45", "45 or more"]),
    "steps of 0.1": (["2.0-2.4", "2.5-2.9", "3.0+"], ["under 2.5", "2.5 to 3", "3 or more"]),
    "words": (
        ["up to 20 thousand", "20 to 50 thousand", "more than 50 thousand"],
        ["under 20k", "20k to 50k", "50k or more"],
    ),
    "top without a plus": (
        ["$0 - $24,999", "$25,000 - $149,999", "150000"],
        ["under 25k", "25k to 150k", "150k or more"],
    ),
    "nobody in the middle": (
        ["0 to 24,999", "50,000 to 99,999", "100,000 and up"],
        ["under 25k", "50k to 100k", "100k or more"],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_brackets_are_read_as_their_writers_mean_them(name):
    words, names = WRITTEN[name]
    y, classes = brackets(words * 5)
    assert [low if low == high else [low, high] for low, high in y[: len(words)].tolist()] == names
    assert classes.tolist() == names or name == "nobody in the middle"


def test_a_single_amount_that_may_mean_or_more_is_refused():
    words = ["0 - 99,999", "100,000 - 149,999", "150,000 - 199,999", "200,000+", "150000"]
    with pytest.raises(ValueError, match=r"write '150000\+'"):
        brackets(words * 5)
    y, _ = brackets(words * 5, edges=["100k", "150k", "200k"])  # then it is an amount
    assert y[4].tolist() == ["150k to 200k"] * 2
    with pytest.warns(UserWarning, match="widened to them, such as '0 - 99,999'"):
        brackets(words * 5, edges=["150k", "200k"])


def test_fit_warns_of_brackets_that_it_takes_for_grades():
    X, y = np.arange(40.0).reshape(-1, 2), [[0, 18], [18, 30], [30, None], [18, 65]] * 5
    with pytest.warns(UserWarning, match=r"18 ends one and begins another.*ordspan\.brackets"):
        OrdinalPA().fit(X, y)
    OrdinalPA(classes=[0, 18, 30, 65]).fit(X, y)
    OrdinalPA().fit(X, [*y[1:], [30, 30]])  # one is exact
