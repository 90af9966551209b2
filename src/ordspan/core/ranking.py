"""Compiled: the rank of a score among the thresholds, or among their averages."""

from ordspan.core.compiling import compiled
from ordspan.core.memory import TRIALS
from ordspan.core.rows import dot


@compiled
def rank_near(edges, score, guess):
    """Predicted rank, 1 + the number of thresholds not above the score, searched from a guess."""
    rank = guess
    while rank < edges.size - 1 and edges[rank] <= score:
        rank += 1
    while edges[rank - 1] > score:
        rank -= 1
    return rank


@compiled
def rank_by_average(edges, correction, trials, score, guess):
    """Rank of a score among the averaged thresholds, searched from a guess."""
    rank = guess
    while rank < edges.size - 1 and edges[rank] - correction[rank] / trials <= score:
        rank += 1
    while rank > 1 and edges[rank - 1] - correction[rank - 1] / trials > score:
        rank -= 1
    return rank


@compiled(inline="always")
def score_row(model, score, values, columns):
    """Score that a row is predicted by, given that of the last iterate: the average's, if any."""
    trials = model.counters[TRIALS]
    if model.edge_correction.size == 0 or trials == 0.0:
        return score
    return score - dot(model.weight_correction, values, columns) / trials


@compiled(inline="always")
def rank_score(model, score, guess):
    """Rank of the score that a row is predicted by."""
    edges, correction, trials = model.edges, model.edge_correction, model.counters[TRIALS]
    if correction.size == 0 or trials == 0.0:
        return rank_near(edges, score, guess)
    return rank_by_average(edges, correction, trials, score, guess)
