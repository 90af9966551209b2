"""One example: every compiled step against its definition, a QP solver and its slow twin."""

from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
import quadprog
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from ordspan.core import updates
from ordspan.core.losses import hinge_loss

VARIANTS = ("PA", "PA-I", "PA-II")
NO_DRIFT = np.empty(0)
THOROUGH = settings(max_examples=700, deadline=None, derandomize=True, database=None)
BRIEF = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def both(*functions):
    """A compiled function as the machine runs it and as Python reads it."""
    cases = []
    for f in functions:
        cases += [pytest.param(f, id=f.__name__), pytest.param(f.py_func, id=f"{f.__name__}-plain")]
    return pytest.mark.parametrize("step", cases)


def pad(theta):
    return np.concatenate([[-inf], theta, [inf]])


def softness_and_cap(variant, C):
    return {"PA": (1.0, inf), "PA-I": (1.0, C), "PA-II": (1.0 + 0.5 / C, inf)}[variant]


def run(step, theta, score, sq_norm, lower, upper, softness, cap):
    """Pull, new thresholds and whether anything moved, by a step with the common arguments."""
    padded = pad(theta)
    pull, moved, finite = step(
        padded, NO_DRIFT, 0.0, float(score), float(sq_norm), lower, upper, softness, cap
    )
    assert finite
    assert padded[0] == -inf
    assert padded[-1] == inf
    return pull, padded[1:-1], moved


# -- examples of every kind ----------------------------------------------------------------------

# a coarse grid makes ties between thresholds, and between thresholds and margins
LEVELS = st.one_of(
    st.integers(-12, 12).map(lambda n: n / 4),
    st.floats(-50, 50, width=32, allow_subnormal=False),
)


@st.composite
def labels(draw, n_classes):
    """Exact, interval, known from one side only, or known not at all."""
    lower = draw(st.integers(1, n_classes))
    upper = draw(st.integers(lower, n_classes))
    kind = draw(st.sampled_from(["exact", "exact", "interval", "at least", "at most", "open"]))
    return {
        "exact": (lower, lower),
        "interval": (lower, upper),
        "at least": (lower, n_classes),
        "at most": (1, upper),
        "open": (1, n_classes),
    }[kind]


@st.composite
def trials(draw, max_classes=30, decades=12):
    """Thresholds, score, squared norm, label and C."""
    n_classes = draw(st.integers(2, max_classes))
    theta = sorted(draw(st.lists(LEVELS, min_size=n_classes - 1, max_size=n_classes - 1)))
    zero_row = draw(st.integers(0, 9)) == 0
    sq_norm = 0.0 if zero_row else 10.0 ** draw(st.floats(-decades, decades))
    C = 10.0 ** draw(st.floats(-decades / 2, decades / 2))
    return np.array(theta), draw(LEVELS), sq_norm, *draw(labels(n_classes)), C


def data_size(theta, score):
    """The yardstick: rounding is relative to the largest number that takes part."""
    return 1.0 + abs(score) + np.abs(theta).max()


# -- the optimum ---------------------------------------------------------------------------------


def exact_truth(theta, score, sq_norm, lower, upper, variant, C):
    """The slow twin in rational arithmetic: not one digit is lost."""
    C = Fraction(C)
    softness = 1 + 1 / (2 * C) if variant == "PA-II" else Fraction(1)
    cap = C if variant == "PA-I" else inf
    exact = np.array([Fraction(v) for v in theta], dtype=object)
    return naive.exact_step(exact, Fraction(score), Fraction(sq_norm), lower, upper, softness, cap)


def assert_optimal(trial, variant, pull, new):
    """The Karush-Kuhn-Tucker conditions, which prove the optimum of a convex QP, with no slack."""
    theta, score, sq_norm, lower, upper, C = trial
    C = Fraction(C)
    landing = Fraction(score) + pull * Fraction(sq_norm)
    total = 0
    for i, (old, now) in enumerate(zip(theta, new, strict=True), start=1):
        side = 1 if i < lower else -1 if i >= upper else 0
        multiplier = side * (Fraction(old) - now)
        margin = side * (landing - now) - 1
        total += side * multiplier
        if side == 0:
            assert now == old
        elif variant == "PA-I":
            assert 0 <= multiplier <= C
            assert margin >= 0 or multiplier == C
            assert margin <= 0 or multiplier == 0
        else:
            slack = multiplier / (2 * C) if variant == "PA-II" else 0
            assert multiplier >= 0
            assert margin + slack >= 0
            assert multiplier * (margin + slack) == 0
    assert pull == total


def by_quadprog(theta, score, sq_norm, lower, upper, softness, cap):
    """New thresholds by the Goldfarb-Idnani solver, from the dual of all three variants.

    The dual is  min 1/2 s (v.m)^2 + softness/2 |m|^2 - d.m  over multipliers 0 <= m <= cap with
    signs v and signed shortfalls d. Its Hessian is as ill-conditioned as s is large, so sqrt(s) v.m
    becomes a variable of its own, tied by one equation, and m is scaled: the Hessian is then the
    identity, and the thresholds come out to 1e-13 for any s. The pull does not: it is a difference
    of multipliers that loses log10(s) digits, which is why it is held against the exact truth only.
    """
    i = np.arange(1, theta.size + 1)
    required = (i < lower) | (i >= upper)
    sign = np.where(i < lower, 1.0, -1.0)[required]
    scale = sqrt(softness)
    linear = np.concatenate([[0.0], (1 + sign * (theta[required] - score)) / scale])
    tie = np.concatenate([[1.0], -sqrt(sq_norm) / scale * sign])
    at_least_zero = np.eye(linear.size)[:, 1:]
    constraints = [(tie / np.linalg.norm(tie))[:, None], at_least_zero]
    bounds = np.zeros(linear.size)
    if cap < inf:
        constraints.append(-at_least_zero)
        bounds = np.concatenate([bounds, np.full(sign.size, -cap * scale)])
    solved = quadprog.solve_qp(np.eye(linear.size), linear, np.hstack(constraints), bounds, 1)[0]
    new = theta.copy()
    new[required] -= sign * solved[1:] / scale
    return new


@pytest.mark.parametrize("variant", VARIANTS)
@THOROUGH
@given(trial=trials())
def test_the_step_is_the_optimum_of_the_quadratic_program(variant, trial):
    theta, score, sq_norm, lower, upper, C = trial
    softness, cap = softness_and_cap(variant, C)
    size = data_size(theta, score)

    pull, new, _ = run(updates.exact_step, *trial[:5], softness, cap)
    if lower > 1 or upper < theta.size + 1:
        solved = by_quadprog(*trial[:5], softness, cap)
        np.testing.assert_allclose(new, solved, rtol=0, atol=1e-9 * size)

    true_pull, true_new = exact_truth(*trial[:5], variant, C)
    assert_optimal(trial, variant, true_pull, true_new)
    np.testing.assert_allclose(new, true_new.astype(float), rtol=0, atol=1e-12 * size)
    # s times an error in the pull is an error in the new score; on short rows the sum counts
    error = float(abs(Fraction(pull) - true_pull))
    assert error * min(1.0, sqrt(sq_norm)) <= 1e-9 * size * theta.size
    assert error * sq_norm <= 1e-9 * size


@pytest.mark.parametrize("variant", VARIANTS)
@BRIEF
@given(trial=trials(max_classes=8), row=st.lists(LEVELS, min_size=1, max_size=5))
def test_the_weights_move_along_the_row_by_the_pull(variant, trial, row):
    theta, _, _, lower, upper, C = trial
    softness, cap = softness_and_cap(variant, C)
    x, w = np.array(row), np.linspace(-1, 1, len(row))
    memory = updates.new_memory(VARIANTS.index(variant), C, x.size, theta.size + 1, False)
    model = updates.view(memory)
    model.padded[1:-1], model.weights[:] = theta, w

    updates.learn_one(memory, x, lower, upper)

    pull, new = naive.exact_step(theta, w @ x, x @ x, lower, upper, softness, cap)
    size = data_size(theta, np.abs(w) @ np.abs(x))
    np.testing.assert_allclose(model.padded[1:-1], new, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(model.weights @ x, w @ x + pull * (x @ x), atol=1e-9 * size)
    np.testing.assert_allclose(model.weights, w + pull * x, rtol=1e-9, atol=1e-9 * size)


# the search adds and takes away s times the way to each corner; where it ends with every threshold
# at its cap, nothing divides that rounding by s again
def test_a_score_that_lands_where_all_are_capped_is_exact_on_long_rows():
    # two thresholds pull by C, one holds by C: the pull is C, whatever the length of the row
    for score in (-10.0, -7.3, -11.7):
        C = (0.1 - score) / 1e10
        pull, _, _ = run(updates.exact_step, np.full(3, 0.1), score, 1e10, 3, 3, 1.0, C)
        assert pull == pytest.approx(C, rel=1e-9, abs=0)


def test_the_printed_step_s_pull_is_that_of_its_support_on_long_rows():
    theta, score, sq_norm = np.array([0.1, 0.3, 0.7]), -10.3, 1e12
    pull, _, _ = run(updates.sca_step, theta, score, sq_norm, 4, 4, 1.0, inf)
    _, _, written = naive.sca_support(theta, score, sq_norm, 4, 4)
    assert pull == pytest.approx(written, rel=1e-9, abs=0)


def test_a_balance_of_capped_sides_leaves_the_score_alone():
    theta = np.array([-0.8, -0.7, -0.5, -0.4, -0.4, -0.2, -0.2, -0.2, -0.2, -0.2, 0.4])
    pull, _, _ = run(updates.exact_step, theta, -1.17, 1e10, 6, 6, 1.0, 1e-5)
    assert abs(pull) * 1e10 <= 1e-9  # five pull, five hold


def test_the_smallest_example_of_the_paper_by_hand():
    pull, new, moved = run(updates.exact_step, np.array([0.0, 5.0]), 0.0, 1.0, 2, 2, 1.0, inf)
    assert moved
    assert pull == 0.5
    assert new.tolist() == [-0.5, 5.0]
    assert pull**2 + np.sum((new - [0, 5]) ** 2) == 0.5


# -- slow twins, compiled and plain --------------------------------------------------------------


@both(updates.exact_step)
@pytest.mark.parametrize("variant", VARIANTS)
@BRIEF
@given(trial=trials(max_classes=40, decades=4))
def test_the_exact_step_is_its_slow_twin(step, variant, trial):
    softness, cap = softness_and_cap(variant, trial[-1])
    pull, new, _ = run(step, *trial[:5], softness, cap)
    twin_pull, twin_new = naive.exact_step(*trial[:5], softness, cap)
    size = data_size(*trial[:2])
    np.testing.assert_allclose(new, twin_new, rtol=0, atol=1e-12 * size)
    if trial[2] > 0:  # a zero row has no use for a pull
        assert pull == pytest.approx(twin_pull, rel=1e-8, abs=1e-10 * size)


@both(updates.sca_step)
@pytest.mark.parametrize("variant", VARIANTS)
@BRIEF
@given(trial=trials(max_classes=12, decades=2))
def test_the_printed_step_is_its_slow_twin(step, variant, trial):
    theta, score, _, lower, upper, C = trial
    softness, cap = softness_and_cap(variant, C)
    pull, new, moved = run(step, *trial[:5], softness, cap)
    if not moved:
        assert not naive.losses(theta, score, lower, upper).any()
        return
    twin_pull, twin_new = naive.sca_step(*trial[:5], softness, cap)
    size = data_size(theta, score)
    # Algorithm 3 multiplies rounding by s |S| in each of its 100 rounds; the caps keep it bounded
    loose = 1e-9 * size if cap == inf else 1e-9 * size + swing(trial)
    np.testing.assert_allclose(new, twin_new, rtol=0, atol=loose)
    assert pull == pytest.approx(twin_pull, rel=1e-8, abs=loose * theta.size)


def swing(trial):
    """How far two runs of the printed SCA-I may drift apart: nothing unless its loop diverges."""
    theta, _, sq_norm, _, _, C = trial
    return 0.0 if sq_norm * theta.size <= 1 else C


@both(updates.sca_support)
@BRIEF
@given(trial=trials(max_classes=12, decades=2))
def test_the_printed_support_sets_are_those_of_algorithm_2(step, trial):
    theta, score, sq_norm, lower, upper, _ = trial
    left, right, twin_pull = naive.sca_support(theta, score, sq_norm, lower, upper)
    start, stop, pull = step(pad(theta), float(score), sq_norm, lower, upper, 1.0)
    assert set(range(start, lower)) == left
    assert set(range(upper, stop)) == right
    assert pull == pytest.approx(twin_pull, rel=1e-9, abs=1e-10 * data_size(theta, score))


@both(updates.sca_capped_pull)
@BRIEF
@given(trial=trials(max_classes=6, decades=2))
def test_algorithm_3_finds_the_optimum_where_its_map_contracts(step, trial):
    theta, score, _, lower, upper, C = trial
    sq_norm = 0.4 / theta.size  # slope below 1: the only rows on which the loop settles
    pull = step(pad(theta), float(score), sq_norm, lower, upper, C)
    twin, _ = naive.sca_capped(theta, score, sq_norm, lower, upper, C)
    assert pull == pytest.approx(twin, rel=1e-9, abs=1e-9 * data_size(theta, score))


@both(updates.prank_step)
@BRIEF
@given(trial=trials(max_classes=12), size=st.sampled_from([1.0, 0.3, 2.5]))
def test_prank_is_its_slow_twin(step, trial, size):
    theta, score, _, lower, upper, _ = trial
    padded = pad(theta)
    pull, moved, finite = step(padded, NO_DRIFT, 0.0, float(score), lower, upper, size)
    twin_pull, twin_new = naive.prank_step(theta, score, lower, upper, size)
    assert finite
    assert moved == (twin_pull != 0 or bool(np.any(twin_new != theta)))
    assert pull == pytest.approx(twin_pull, rel=1e-15)
    np.testing.assert_array_equal(padded[1:-1], twin_new)


def test_prank_moves_what_lies_between_the_rank_and_the_label():
    # Crammer & Singer's picture: predicted 1, label 4: thresholds 1..3 come down by one
    padded = pad(np.array([1.0, 2.0, 3.0, 4.0]))
    pull, _, _ = updates.prank_step(padded, NO_DRIFT, 0.0, 0.0, 4, 4, 1.0)
    assert pull == 3.0
    assert padded[1:-1].tolist() == [0.0, 1.0, 2.0, 4.0]


@both(updates.rank_near)
@BRIEF
@given(trial=trials(max_classes=12), guess=st.integers(1, 12))
def test_the_rank_does_not_depend_on_the_guess(step, trial, guess):
    theta, score = trial[:2]
    expected = naive.rank(theta, score)
    assert step(pad(theta), float(score), min(guess, theta.size + 1)) == expected


@both(updates.sweep)
@BRIEF
@given(trial=trials(max_classes=12))
def test_a_sweep_counts_and_adds_the_shortfalls_of_one_side(step, trial):
    theta, landing, _, lower, upper, cap = trial
    padded = pad(theta)
    for near, sign, side in ((lower - 1, 1, padded[1:lower]), (upper, -1, padded[upper:-1])):
        short = 1 + sign * (side - landing)
        total, below_cap, cleared = step(padded, float(landing), near, float(sign), cap)
        assert abs(below_cap - near) == np.count_nonzero(short >= cap)
        assert abs(cleared - near) == np.count_nonzero(short > 0)
        assert total == pytest.approx(short[(short > 0) & (short < cap)].sum())


@both(updates.central_guess)
@BRIEF
@given(trial=trials(max_classes=12))
def test_the_central_guess_lies_between_the_score_and_the_middle_of_the_label(step, trial):
    theta, score, sq_norm, lower, upper, C = trial
    left, right = pad(theta)[[lower - 1, upper]] + [1, -1]
    middle = np.clip(score, left, right) if left <= right else (left + right) / 2
    guess = step(pad(theta), float(score), sq_norm, lower, upper, 1.0, C, 9)
    rounding = 1e-14 * data_size(theta, score)
    assert min(score, middle) - rounding <= guess <= max(score, middle) + rounding


@both(updates.follow)
def test_a_search_along_the_corners_ends_on_the_right_piece(step):
    # theta = (0, 3), label 2, f = 0, s = 1, PA: a = 1/2; nothing on the right is met on the way
    ends = (1, 0, 2, 2)
    padded = pad(np.array([0.0, 3.0]))
    assert step(padded, 0.0, 1.0, 1.0, inf, 1.0, 1, ends, 1.0, 1) == (0.5, 1, (1, 0, 2, 2))
    # s = 8 would carry the score to 8/9, but theta_2 = 1.5 is violated from 1/2 on and holds back
    padded = pad(np.array([0.0, 1.5]))
    way, n_linear, ends = step(padded, 0.0, 8.0, 1.0, inf, 1.0, 1, ends, 8.0, 1)
    pull, _ = naive.exact_step(np.array([0.0, 1.5]), 0.0, 8.0, 2, 2)
    assert (n_linear, ends) == (2, (1, 0, 2, 3))
    assert way == pytest.approx(8 * pull, rel=1e-14)


@both(updates.move_side)
def test_a_side_moves_by_the_written_map_and_remembers_its_drift(step):
    theta = np.array([0.0, 1.0, 2.0, 5.0])
    padded, drift = pad(theta), np.zeros(6)
    step(padded, drift, 3.0, 2, 4, 1.0, 0.25, padded[1], 1.5, 0.0)
    assert padded[1:-1].tolist() == [0.0, 0.25, 0.5, 5.0]
    np.testing.assert_array_equal(drift[1:-1], 3.0 * (padded[1:-1] - theta))


@both(updates.clipped_loss)
@BRIEF
@given(trial=trials(max_classes=8))
def test_the_clipped_losses_are_the_hinge_losses(step, trial):
    theta, score, _, lower, upper, _ = trial
    expected = hinge_loss(score, theta, lower, upper)
    for i in [*range(1, lower), *range(upper, theta.size + 1)]:
        got = step(pad(theta), float(score), i, lower)
        assert got == pytest.approx(expected[i - 1], rel=1e-12, abs=1e-13 * data_size(theta, score))
    np.testing.assert_allclose(naive.losses(theta, score, lower, upper), expected)


@both(updates.score_and_norm)
def test_score_and_norm_are_dot_products(step):
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=7), rng.normal(size=7)
    assert step(w, x, None) == pytest.approx((w @ x, x @ x), rel=1e-14)
    columns = np.array([4, 0, 6], dtype=np.int32)
    picked = x[:3].copy()
    assert step(w, picked, columns) == pytest.approx((w[columns] @ picked, picked @ picked))


@both(updates.add_scaled)
def test_adding_a_scaled_row_touches_its_columns_only(step):
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=5), rng.normal(size=5)
    dense, sparse = w.copy(), w.copy()
    step(dense, 0.7, x, None)
    np.testing.assert_allclose(dense, w + 0.7 * x, rtol=1e-14)
    step(sparse, 0.7, x[:2].copy(), np.array([3, 1], dtype=np.int32))
    np.testing.assert_allclose(sparse[[3, 1]], (w[[3, 1]] + 0.7 * x[:2]), rtol=1e-14)
    np.testing.assert_array_equal(sparse[[0, 2, 4]], w[[0, 2, 4]])


# -- theorems ------------------------------------------------------------------------------------


@BRIEF
@given(trial=trials())
def test_a_hard_step_leaves_nothing_to_correct(trial):
    theta, score, sq_norm, lower, upper, _ = trial
    pull, new, _ = run(updates.exact_step, *trial[:5], 1.0, inf)
    left = hinge_loss(score + pull * sq_norm, new, lower, upper).sum()
    assert left <= 1e-12 * data_size(theta, score) * theta.size


@pytest.mark.parametrize("step", [updates.exact_step, updates.sca_step])
@pytest.mark.parametrize("variant", VARIANTS)
@BRIEF
@given(trial=trials())
def test_two_comparisons_decide_whether_anything_moves(step, variant, trial):
    theta, score, _, lower, upper, C = trial
    pull, new, moved = run(step, *trial[:5], *softness_and_cap(variant, C))
    padded = pad(theta)
    assert moved == (padded[lower - 1] + 1 > score or padded[upper] - 1 < score)
    loss = hinge_loss(score, theta, lower, upper).sum()
    if not moved:
        assert loss <= 1e-13 * data_size(theta, score)
        assert pull == 0
        assert new.tobytes() == theta.tobytes()


@pytest.mark.parametrize("variant", VARIANTS)
@BRIEF
@given(trial=trials())
def test_a_wide_open_interval_changes_nothing(variant, trial):
    theta, score, sq_norm, _, _, C = trial
    for step in (updates.exact_step, updates.sca_step):
        softness, cap = softness_and_cap(variant, C)
        pull, new, moved = run(step, theta, score, sq_norm, 1, theta.size + 1, softness, cap)
        assert not moved
        assert pull == 0.0
        assert new.tobytes() == theta.tobytes()


@pytest.mark.parametrize("variant", VARIANTS)
@BRIEF
@given(trial=trials(max_classes=12))
def test_thresholds_stay_sorted_and_free_ones_stay_put(variant, trial):
    theta, _, _, lower, upper, C = trial
    _, new, _ = run(updates.exact_step, *trial[:5], *softness_and_cap(variant, C))
    assert np.all(new[:-1] <= new[1:])
    np.testing.assert_array_equal(new[lower - 1 : upper - 1], theta[lower - 1 : upper - 1])


@BRIEF
@given(trial=trials())
def test_a_capped_threshold_never_moves_by_more_than_c(trial):
    theta, score, _, _, _, C = trial
    for step in (updates.exact_step, updates.sca_step):
        _, new, _ = run(step, *trial[:5], 1.0, C)
        assert np.abs(new - theta).max() <= C + 1e-15 * data_size(theta, score)


@BRIEF
@given(trial=trials(decades=6))
def test_a_huge_c_is_no_cap_and_no_softness(trial):
    size = data_size(*trial[:2])
    hard_pull, hard, _ = run(updates.exact_step, *trial[:5], 1.0, inf)
    capped_pull, capped, _ = run(updates.exact_step, *trial[:5], *softness_and_cap("PA-I", 1e12))
    assert capped_pull == pytest.approx(hard_pull, rel=1e-9, abs=1e-12 * size)
    np.testing.assert_allclose(capped, hard, rtol=0, atol=1e-12 * size)
    soft_pull, soft, _ = run(updates.exact_step, *trial[:5], *softness_and_cap("PA-II", 1e12))
    assert soft_pull == pytest.approx(hard_pull, rel=1e-9, abs=1e-9 * size)
    np.testing.assert_allclose(soft, hard, rtol=0, atol=1e-9 * size)


@BRIEF
@given(trial=trials(decades=4))
def test_a_zero_row_moves_thresholds_only(trial):
    theta, score, _, lower, upper, C = trial
    pull, new, _ = run(updates.exact_step, theta, score, 0.0, lower, upper, 1.0, C)
    assert pull == 0.0
    left, right = naive.multipliers(theta, score, lower, upper, 1.0, C)
    expected = theta.copy()
    expected[: lower - 1] -= left
    expected[upper - 1 :] += right
    np.testing.assert_allclose(new, expected, rtol=0, atol=1e-14 * data_size(theta, score))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_classes", [300, 1000])
def test_a_step_over_hundreds_of_thresholds_is_its_slow_twin(variant, n_classes):
    rng = np.random.default_rng(n_classes)
    for t in range(40):
        theta = np.sort(rng.normal(size=n_classes - 1)) * 10.0 ** rng.integers(-2, 3)
        score, sq_norm = rng.normal() * 3, 10.0 ** rng.uniform(-4, 3)
        lower = int(rng.integers(1, n_classes + 1))
        upper = lower if t % 2 else int(rng.integers(lower, n_classes + 1))
        softness, cap = softness_and_cap(variant, 10.0 ** rng.uniform(-3, 2))
        pull, new, _ = run(updates.exact_step, theta, score, sq_norm, lower, upper, softness, cap)
        twin_pull, twin = naive.exact_step(theta, score, sq_norm, lower, upper, softness, cap)
        size = data_size(theta, score)
        np.testing.assert_allclose(new, twin, rtol=0, atol=1e-11 * size)
        assert pull * sq_norm == pytest.approx(twin_pull * sq_norm, rel=1e-8, abs=1e-10 * size)


# -- the printed algorithms ----------------------------------------------------------------------


def test_the_printed_sca_is_feasible_but_not_the_smallest_move():
    theta = np.array([0.0, 5.0])
    pull, new, _ = run(updates.sca_step, theta, 0.0, 1.0, 2, 2, 1.0, inf)
    assert pull == pytest.approx(1 / 3, rel=1e-15)
    assert new == pytest.approx([-2 / 3, 16 / 3], rel=1e-15)
    assert hinge_loss(pull, new, 2, 2).sum() == pytest.approx(0, abs=1e-15)
    assert pull**2 + np.sum((new - theta) ** 2) == pytest.approx(2 / 3)


@BRIEF
@given(trial=trials(max_classes=10, decades=4))
def test_no_feasible_printed_step_is_smaller_than_the_exact_one(trial):
    theta, score, sq_norm, lower, upper, _ = trial
    size = data_size(theta, score)

    def sq_move(pull, new):
        return pull**2 * sq_norm + np.sum((new - theta) ** 2)

    pull, new, _ = run(updates.sca_step, *trial[:5], 1.0, inf)
    if hinge_loss(score + pull * sq_norm, new, lower, upper).sum() > 1e-9 * size:
        return  # see test_the_printed_sca_can_leave_a_loss
    smallest = sq_move(*run(updates.exact_step, *trial[:5], 1.0, inf)[:2])
    assert smallest <= sq_move(pull, new) * (1 + 1e-9) + 1e-9 * size**2


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("lower", "upper"), [(1, 1), (4, 4), (2, 2), (1, 3), (2, 4), (2, 3)])
def test_the_printed_search_always_ends(variant, lower, upper):
    # all ties: both sides are used up, where the printed loop would run for ever
    softness, cap = softness_and_cap(variant, 0.5)
    for score in (-5.0, 0.0, 5.0):
        _, new, _ = run(updates.sca_step, np.zeros(3), score, 100.0, lower, upper, softness, cap)
        assert np.all(np.isfinite(new))


def test_the_printed_sca_can_break_the_order_and_is_repaired():
    # the left side stops growing because the right side's test overwrote the flag: theta_2 and
    # theta_3 come down past theta_1, though none of the three was violated
    theta = np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    pull, broken = naive.sca_hard(theta, 1.0, 1.0, 4, 4)
    assert pull == -0.5
    assert broken.tolist() == [0.0, -0.5, -0.5, 1.5, 10.0]
    pull, new, _ = run(updates.sca_step, theta, 1.0, 1.0, 4, 4, 1.0, inf)
    assert pull == -0.5
    assert new.tolist() == [0.0, 0.0, 0.0, 1.5, 10.0]


def test_the_printed_sca_can_leave_a_loss():
    # the same overwritten flag: theta_1 is violated as much as the other two, and is left alone
    theta = np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    _, printed = naive.sca_hard(theta, 0.0, 0.0, 4, 4)
    assert printed.tolist() == [0.0, -1.0, -1.0, 1.0, 10.0]
    assert hinge_loss(0.0, printed, 4, 4).tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    _, exact, _ = run(updates.exact_step, theta, 0.0, 0.0, 4, 4, 1.0, inf)
    assert hinge_loss(0.0, exact, 4, 4).sum() == 0


@THOROUGH
@given(trial=trials(max_classes=5, decades=4))
def test_up_to_five_ranks_the_printed_sca_is_feasible_and_keeps_the_order(trial):
    theta, score, sq_norm, lower, upper, _ = trial
    if not naive.losses(theta, score, lower, upper).any():
        return
    pull, new = naive.sca_hard(*trial[:5])
    rounding = 1e-12 * data_size(theta, score) * (1 + sq_norm)
    assert np.all(np.diff(new) >= -rounding)
    assert hinge_loss(score + pull * sq_norm, new, lower, upper).sum() <= rounding
