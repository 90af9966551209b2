"""Synthetic data with a known true model."""

from statistics import NormalDist

import numpy as np

from ordspan.datasets.sets import Dataset, Truth, bin_ranks, standardise


def synthetic(
    n: int = 10_000,
    n_features: int = 10,
    n_classes: int = 5,
    noise: float = 0.5,
    random_state: int | np.random.Generator | None = 0,
) -> Dataset:
    """Ranks of a noisy linear score, with about the same number of rows in every grade.

    The features are normal, the score is their product with a random direction of length 1 plus
    normal noise, and the true thresholds cut the score into equally likely grades. As the noise
    is symmetric, the noiseless score is the median: no ranker has a smaller expected absolute
    error than the true one, whose error on this sample is ``truth.mae``.

    Parameters
    ----------
    n, n_features, n_classes : int
        Number of rows, features and grades.
    noise : float
        Standard deviation of the noise, relative to that of the noiseless score; 0 makes the
        grades separable.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    Dataset
        With the field ``truth``: weights, thresholds and error of the true ranker.

    Examples
    --------
    >>> from ordspan.datasets import synthetic
    >>> synthetic(noise=0.0).truth.mae
    0.0
    """
    sizes = {"n": (n, 1), "n_features": (n_features, 1), "n_classes": (n_classes, 2)}
    for name, (value, least) in sizes.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value!r}")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be a finite number >= 0, got {noise!r}")
    rng = np.random.default_rng(random_state)
    weights = rng.standard_normal(n_features)
    weights /= np.linalg.norm(weights)
    X = standardise(rng.standard_normal((n, n_features)))
    shares = np.arange(1, n_classes) / n_classes
    score = NormalDist(sigma=np.hypot(1.0, noise))
    thresholds = np.array([score.inv_cdf(share) for share in shares])
    edges = [-np.inf, *thresholds, np.inf]
    clean = X @ weights
    ranks = bin_ranks(clean + noise * rng.standard_normal(n), edges)
    mae = float(np.abs(bin_ranks(clean, edges) - ranks).mean())
    names = tuple(f"feature {number}" for number in range(1, n_features + 1))
    source = f"synthetic stream, noise {noise:g}, random_state {random_state}"
    return Dataset("synthetic", X, ranks, n_classes, names, source, Truth(weights, thresholds, mae))
