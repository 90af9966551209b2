"""Slow, obvious twins of the compiled code, written from the paper and the page on mathematics.

Thresholds are a plain array: ``theta[i - 1]`` is theta_i of the paper. A step returns the pull (how
many times the row is added to the weights) and the new thresholds; nothing is changed in place.
`exact_step` works on arrays of `fractions.Fraction` too, and is then exact.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np

SCA_ROUNDS = 100


class Learned(NamedTuple):
    """What `learn_stream` ends with."""

    weights: np.ndarray
    thresholds: np.ndarray
    predicted: np.ndarray  # rank of each row just before it was learned
    n_updates: int


# -- one example ---------------------------------------------------------------------------------


def rank(theta, score):
    """h(x) of the paper: one more than the number of thresholds that the score reaches."""
    return 1 + int(np.count_nonzero(score >= theta))


def losses(theta, score, lower, upper):
    """The l_i of the paper; thresholds within the interval have none."""
    out = np.zeros(theta.size)
    out[: lower - 1] = np.maximum(0, 1 + theta[: lower - 1] - score)
    out[upper - 1 :] = np.maximum(0, 1 + score - theta[upper - 1 :])
    return out


def multipliers(theta, landing, lower, upper, softness, cap):
    """lambda and mu of the required thresholds, for the score at which the step lands."""
    ceiling = softness * cap
    left = np.minimum(np.maximum(1 + theta[: lower - 1] - landing, 0), ceiling) / softness
    right = np.minimum(np.maximum(1 + landing - theta[upper - 1 :], 0), ceiling) / softness
    return left, right


def landing_score(theta, score, sq_norm, lower, upper, softness, cap):
    """The root u of softness (u - f) = s softness (sum of lambda(u) - sum of mu(u)).

    The difference of the two sides is piecewise linear and increasing, so: list every corner, halve
    the list until two neighbours enclose the root, and draw the straight line between them.
    """

    def height(u):
        left, right = multipliers(theta, u, lower, upper, softness, cap)
        return softness * (u - score) - sq_norm * softness * (left.sum() - right.sum())

    below, above = theta[: lower - 1], theta[upper - 1 :]
    corners = [score, *(below + 1), *(above - 1)]
    if cap < np.inf:
        corners += [*(below + 1 - softness * cap), *(above - 1 + softness * cap)]
    corners.sort()
    first, last = 0, len(corners) - 1
    while last - first > 1:
        middle = (first + last) // 2
        if height(corners[middle]) <= 0:
            first = middle
        else:
            last = middle
    low, high = height(corners[first]), height(corners[last])
    if low >= 0 or high == low:
        return corners[first]
    return corners[first] + (corners[last] - corners[first]) * (-low / (high - low))


def softness_and_cap(variant, C):
    """All that distinguishes the variants, at a given C, which may be a `Fraction`."""
    return {"PA": (1, np.inf), "PA-I": (1, C), "PA-II": (1 + 1 / (2 * C), np.inf)}[variant]


def exact_step(theta, score, sq_norm, lower, upper, softness=1, cap=np.inf):
    """Smallest move that a softness and a cap allow."""
    landing = landing_score(theta, score, sq_norm, lower, upper, softness, cap)
    left, right = multipliers(theta, landing, lower, upper, softness, cap)
    # the two are equal; the first loses digits on long rows, the second on short ones
    pull = (left.sum() - right.sum()) if sq_norm < 1 else (landing - score) / sq_norm
    new = theta.copy()
    new[: lower - 1] -= left
    new[upper - 1 :] += right
    return pull, new


def sca_support(theta, score, sq_norm, lower, upper, softness=1.0):
    """Algorithm 2 with its sets written out.

    Thresholds that do not exist are left out of the first sets, and the loop also ends when there
    is nothing left to try; for PA-II the softness takes the place of the 1.
    """
    n_classes = theta.size + 1
    loss = dict(enumerate(losses(theta, score, lower, upper), start=1))
    left = {lower - 1} - {0}
    right = {upper} - {n_classes}

    def pull(left, right):
        total = sum(loss[i] for i in left) - sum(loss[i] for i in right)
        return total / (softness + sq_norm * (len(left) + len(right)))

    p, q, flag = lower - 2, upper + 1, True
    while flag and (p > 0 or q < n_classes):
        if p > 0:
            flag = loss[p] - sq_norm * pull(left | {p}, right) > 0
            if flag:
                left, p = left | {p}, p - 1
        if q < n_classes:
            flag = loss[q] + sq_norm * pull(left, right | {q}) > 0
            if flag:
                right, q = right | {q}, q + 1
    return left, right, pull(left, right)


def sca_hard(theta, score, sq_norm, lower, upper, softness=1.0):
    """Algorithm 1 as printed, on the sets of Algorithm 2: order not guaranteed."""
    left, right, pull = sca_support(theta, score, sq_norm, lower, upper, softness)
    loss = losses(theta, score, lower, upper)
    new = theta.copy()
    for i in left:
        new[i - 1] -= (loss[i - 1] - sq_norm * pull) / softness
    for i in right:
        new[i - 1] += (loss[i - 1] + sq_norm * pull) / softness
    return pull, new


def sca_capped(theta, score, sq_norm, lower, upper, cap):
    """Algorithm 3: multipliers and pull in turn, for at most SCA_ROUNDS rounds."""
    loss = losses(theta, score, lower, upper)
    pull = 0.0
    for _ in range(SCA_ROUNDS):
        before = pull
        left = np.clip(loss[: lower - 1] - before * sq_norm, 0, cap)
        right = np.clip(loss[upper - 1 :] + before * sq_norm, 0, cap)
        pull = left.sum() - right.sum()
        if abs(pull - before) <= 1e-12 * (1 + abs(pull)):
            break
    new = theta.copy()
    new[: lower - 1] -= left
    new[upper - 1 :] += right
    return pull, new


def sca_step(theta, score, sq_norm, lower, upper, softness=1.0, cap=np.inf):
    """The printed step, thresholds put back into order where it breaks it."""
    if cap < np.inf:
        pull, new = sca_capped(theta, score, sq_norm, lower, upper, cap)
    else:
        pull, new = sca_hard(theta, score, sq_norm, lower, upper, softness)
    return pull, np.maximum.accumulate(new)


def prank_step(theta, score, lower, upper, size=1.0):
    """Crammer & Singer (2001), with y_i = 0 for the thresholds within the interval.

    Steps of unequal size could push a threshold past one that stays: it stops there.
    """
    if lower <= rank(theta, score) <= upper:
        return 0.0, theta.copy()
    i = np.arange(1, theta.size + 1)
    side = np.where(i < lower, 1.0, np.where(i >= upper, -1.0, 0.0))  # the y_i
    tau = np.where(side * (score - theta) <= 0, side, 0.0)
    new = theta - size * tau
    staying_below = theta[(side > 0) & (tau == 0)]
    staying_above = theta[(side < 0) & (tau == 0)]
    if staying_below.size:
        new[tau > 0] = np.maximum(new[tau > 0], staying_below.max())
    if staying_above.size:
        new[tau < 0] = np.minimum(new[tau < 0], staying_above.min())
    return size * tau.sum(), new


def perceptron_step(vectors, x, lower, upper, size=1.0):
    """Crammer & Singer (2003), max-score update; the lowest class wins a tie."""
    score = vectors @ x
    inside = np.arange(lower - 1, upper)
    best = inside[np.argmax(score[inside])]
    errors = [r for r in range(len(score)) if r not in inside and score[r] >= score[best]]
    new = vectors.copy()
    if errors:
        worst = max(errors, key=lambda r: score[r])
        new[best] += size * x
        new[worst] -= size * x
    return new


def class_step(scores, sq_norm, lower, upper, spread=0, cap=np.inf):
    """How many times the row is added to each class's vector by multiclass PA, PA-I or PA-II.

    Tries every number of rivals in turn, worst first, and takes the one that agrees with itself:
    the multipliers (loss - level) / s of those in it, and only those, are above zero. Where the
    sum T of the multipliers is free, level = (s + spread) T; where it is capped, it is given.
    """
    outside = [r for r in range(len(scores)) if not lower <= r + 1 <= upper]
    pulls = np.zeros_like(scores)
    best = max(range(lower - 1, upper), key=lambda r: scores[r])
    loss = {r: 1 - (scores[best] - scores[r]) for r in outside}
    worst_first = sorted(outside, key=lambda r: -loss[r])
    if sq_norm == 0 or not outside or loss[worst_first[0]] <= 0:
        return pulls
    for n in range(1, len(outside) + 1):
        lost = sum(loss[r] for r in worst_first[:n])
        total = min(cap, lost / (sq_norm + n * (sq_norm + spread)))
        level = (lost - sq_norm * total) / n
        if n == len(outside) or loss[worst_first[n]] <= level:
            break
    for r in worst_first[:n]:
        pulls[r] = -(loss[r] - level) / sq_norm
    pulls[best] = total
    return pulls


# -- a whole stream ------------------------------------------------------------------------------


def threshold_step(rule, solver, theta, score, sq_norm, lower, upper, strength):
    """One step of any rule that has thresholds."""
    if rule == "PRank":
        return prank_step(theta, score, lower, upper, strength)
    if not losses(theta, score, lower, upper).any():
        return 0.0, theta
    step = exact_step if solver == "exact" else sca_step
    return step(theta, score, sq_norm, lower, upper, *softness_and_cap(rule, strength))


def learn_stream(
    X, lower, upper, rule, C=0.1, average=False, solver="exact", sample_weight=None, n_classes=None
):
    """Learn dense rows one after the other in plain NumPy.

    The rule is "PA", "PA-I", "PA-II", "PRank", "perceptron", "MC-PA", "MC-PA-I" or "MC-PA-II". To
    average is to predict with the mean of the iterates after each row, all of which are stored.
    A sample weight is a factor of C (of the step, which is 1, of the baselines); 0 skips the row,
    as a label of all grades does.
    """
    X, base = np.asarray(X, float), C if "PA" in rule else 1.0
    strengths = np.full(len(X), base) if sample_weight is None else base * np.asarray(sample_weight)
    if rule == "perceptron" or rule.startswith("MC-"):
        return learn_classes(X, lower, upper, rule, strengths, n_classes)
    shown = X, X, [x @ x for x in X]
    return learn_thresholds(*shown, lower, upper, rule, strengths, average, n_classes, solver)


def learn_thresholds(
    rows, moves, norms, lower, upper, rule, strengths, average, n_classes, solver="exact"
):
    """Score row by row; a step adds its pull times a row of ``moves`` to the weights.

    Where the rows are those of a matrix of kernel values, the weights are their coefficients.
    """
    w, theta, history = np.zeros(rows.shape[1]), np.zeros(n_classes - 1), []
    predicted, n_updates = np.empty(len(rows), dtype=np.int64), 0
    for t, row in enumerate(rows):
        guide = mean(history) if average and history else (w, theta)
        predicted[t] = rank(guide[1], guide[0] @ row)
        if strengths[t] == 0 or (lower[t] == 1 and upper[t] == n_classes):
            continue
        label = lower[t], upper[t], strengths[t]
        pull, new = threshold_step(rule, solver, theta, w @ row, norms[t], *label)
        n_updates += new is not theta and bool(pull != 0 or np.any(new != theta))
        w, theta = w + pull * moves[t] if pull != 0 else w, new
        history.append((w, theta))
    w, theta = mean(history) if average and history else (w, theta)
    return Learned(w, theta, predicted, n_updates)


def learn_classes(X, lower, upper, rule, strengths, n_classes):
    """One weight vector per class."""
    vectors, n_updates = np.zeros((n_classes, X.shape[1])), 0
    predicted = np.empty(len(X), dtype=np.int64)
    for t, x in enumerate(X):
        predicted[t], new, strength = int(np.argmax(vectors @ x)) + 1, vectors, strengths[t]
        if rule == "perceptron":
            new = perceptron_step(vectors, x, lower[t], upper[t], strength)
        elif strength > 0:
            spread = 0.5 / strength if rule == "MC-PA-II" else 0.0
            cap = strength if rule == "MC-PA-I" else np.inf
            pulls = class_step(vectors @ x, x @ x, lower[t], upper[t], spread, cap)
            new = vectors + np.outer(pulls, x)
        n_updates += not np.array_equal(new, vectors)
        vectors = new
    return Learned(vectors, np.zeros(n_classes - 1), predicted, n_updates)


def project_out(gram, alpha, spare, onto):
    """Coefficients without one vector: its projection on the span of some others replaces it."""
    share = np.linalg.solve(gram[np.ix_(onto, onto)], gram[onto, spare])
    new = alpha.copy()
    new[spare] = 0.0
    new[onto] += share * alpha[spare]
    return new


def mean(history):
    return tuple(np.mean(part, axis=0) for part in zip(*history, strict=True))


# -- sentences -----------------------------------------------------------------------------------

PUNCTUATION = "\x00-\x20.,\x7f-\xbf\u2000-\u206f\u3000-\u303f"
SIGNS = r"!-+\-/:-@\[-\^`{-~\u20a0-\u2bff\ufe00-\ufe0f\U0001f000-\U0001faff"
LETTERS = f"[^{PUNCTUATION}{SIGNS}\u3040-\u9fff]+"
TOKEN = re.compile(f"{LETTERS}(?:['’]{LETTERS})*|[{SIGNS}]+|[\u3040-\u9fff]")


def tokens(sentence):
    """Words, runs of signs, and single Chinese and Japanese characters."""
    return [word.replace("’", "'") for word in TOKEN.findall(sentence.lower())]


def place(term, seed, bits):
    """Where a word, or a pair of words as a tuple, stands among the features."""
    hashes = []
    for word in (term,) if isinstance(term, str) else term:
        hashed = 0xCBF29CE484222325
        for letter in word:
            hashed = (hashed ^ ord(letter)) * 0x100000001B3 % 2**64
        hashes.append(hashed)
    whole = hashes[0] if len(hashes) == 1 else (hashes[0] * 0x100000001B3 ^ hashes[1]) % 2**64
    mixed = (whole ^ seed) * 0x9E3779B97F4A7C15 % 2**64
    return (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15 % 2**64 >> 64 - bits


def sentence_features(sentence, seed, bits):
    """Roots of the counts of words, and of half the counts of pairs, with a squared norm of 10."""
    words, row = tokens(sentence), np.zeros(2**bits)
    for word in words:
        row[place(word, seed, bits)] += 1.0
    for pair in pairwise(words):
        row[place(pair, seed, bits)] += 0.5
    return np.sqrt(10 * row / row.sum()) if words else row
