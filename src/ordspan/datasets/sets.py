"""The data sets of section 6.1 of the paper, incomes of nine surveys, and synthetic data."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.state import Ranks
from ordspan.wording import check_choice

Floats = NDArray[np.float64]

FILES = resources.files("ordspan.datasets") / "files"
CALIFORNIA_EDGES = (1, 100_001, 200_001, 300_001, 400_001, 500_002)
ABALONE_EDGES = (1, 8, 10, 13, 30)
PARKINSON_EDGES = (7, 18, 28, 38, np.inf)
INCOME_COLUMNS = ("survey", "sex", "age", "education", "region", "lower", "upper")

SEXES = {"M": 1.0, "F": -1.0, "I": 0.0}
"""One number for the sex of an abalone, as in the packed table: infants are between the sexes."""


@dataclass(frozen=True)
class Truth:
    """The true ranker of a synthetic data set, and its error on the sample.

    Parameters
    ----------
    weights : ndarray of shape (d,)
        Weights of the score, a vector of length 1.
    thresholds : ndarray of shape (K - 1,)
        Thresholds between the grades.
    mae : float
        Mean absolute error of the ranker on the sample, in ranks.

    Examples
    --------
    >>> from ordspan.datasets import synthetic
    >>> synthetic(n=1000, n_classes=3, noise=0.0).truth.thresholds.round(2)
    array([-0.43,  0.43])
    """

    weights: Floats
    thresholds: Floats
    mae: float


@dataclass(frozen=True)
class Dataset:
    """A data set to learn from.

    Parameters
    ----------
    name : str
        Its name, as ``load_dataset`` takes it.
    X : ndarray of shape (n, d)
        Features with zero mean and unit variance; a constant column is all zeros.
    ranks : ndarray of shape (n,)
        Ranks 1..K of the grades.
    n_classes : int
        Number of grades K.
    feature_names : tuple of str
        Names of the columns.
    source : str
        Where the rows came from.
    truth : Truth or None
        The true ranker, if known.

    Examples
    --------
    >>> from ordspan.datasets import synthetic
    >>> data = synthetic(n=100, n_features=3)
    >>> data.X.shape, data.n_classes, data.feature_names
    ((100, 3), 5, ('feature 1', 'feature 2', 'feature 3'))
    """

    name: str
    X: Floats
    ranks: Ranks
    n_classes: int
    feature_names: tuple[str, ...]
    source: str
    truth: Truth | None = None


def load_packed(name: str) -> dict[str, NDArray[Any]]:
    """The arrays of a shipped file."""
    with (FILES / f"{name}.npz").open("rb") as file, np.load(file) as packed:
        return dict(packed)


def unpack_table(name: str) -> tuple[tuple[str, ...], Floats, str]:
    """Names of the columns of a shipped table, the numbers of the original file, and its source.

    Each column is packed as integers and a divisor; a quotient is the number that the text gave.

    >>> names, values, _ = unpack_table("abalone")
    >>> names[1], values[0, 1]
    ('length', np.float64(0.455))
    """
    about = json.loads((FILES / "sources.json").read_text(encoding="utf-8"))[name]
    packed = load_packed(name)
    names = tuple(map(str, packed["names"]))
    values = np.divide(packed["numbers"].T, packed["units"], order="C")
    return names, values, f"shipped with ordspan; {about['source']} ({about['licence']})"


def standardise(X: Floats) -> Floats:
    """Zero mean and unit variance in every column, in place; a constant column becomes zeros.

    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    varies = X.max(axis=0) > X.min(axis=0)  # exact, where a computed variance may be 1e-33
    X[:, ~varies] = 0.0
    for _ in range(2):  # the mean of large numbers is rounded: again for the remainder
        X -= X.mean(axis=0)
    # einsum needs no second matrix as X.std() does
    spread = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X /= np.where(varies, spread, 1.0)
    return X


def bin_ranks(values: ArrayLike, edges: Sequence[float]) -> Ranks:
    """Rank k of the half-open bin [edges[k-1], edges[k]) each value lies in.

    >>> bin_ranks([1, 7, 7.9, 8, 29], edges=(1, 8, 10, 13, 30))
    array([1, 1, 1, 2, 4])
    """
    return np.searchsorted(edges, np.asarray(values, dtype=np.float64), side="right")


def california() -> Dataset:
    """California housing: 20640 districts, 8 features, 5 grades of the median house value.

    The grades are 1-100000, 100001-200000, ..., 400001-500001. The paper's 9 features include the
    house value itself, and its 20460 rows are taken for a typo of 20640.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..5.
    """
    names, table, source = unpack_table("california")
    ranks = bin_ranks(table[:, -1], CALIFORNIA_EDGES)
    X = standardise(table[:, :-1].copy())
    return Dataset("california", X, ranks, 5, names[:-1], source)


def abalone(*, sex: str = "one-hot") -> Dataset:
    """Abalone: 4177 shells, 4 grades of the number of rings, 1-7, 8-9, 10-12 and 13-29.

    Parameters
    ----------
    sex : {"one-hot", "one-column"}
        Three indicator columns for M, F and I, 10 features in all; or one column with 1 for M, -1
        for F and 0 for I (infant), the 8 features of the paper.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..4.
    """
    check_choice("sex", sex, ("one-hot", "one-column"))
    names, table, source = unpack_table("abalone")
    codes, sexes = table[:, :1], ["sex"]
    if sex == "one-hot":
        codes = (codes == list(SEXES.values())).astype(np.float64)
        sexes = [f"sex={name}" for name in SEXES]
    X = standardise(np.hstack([codes, table[:, 1:-1]]))
    ranks = bin_ranks(table[:, -1], ABALONE_EDGES)
    return Dataset("abalone", X, ranks, 4, (*sexes, *names[1:-1]), source)


def parkinson(*, motor_updrs: bool = False, subject: bool = False) -> Dataset:
    """Parkinson telemonitoring: 5875 recordings, 19 to 21 features, 4 grades of total_UPDRS.

    The printed grades 7-17, 18-27, 28-37 and 38-54.992 leave gaps, but the scores are real
    numbers; the grades here go by the integer part: [7, 18), [18, 28), [28, 38), [38, inf).

    Parameters
    ----------
    motor_updrs : bool
        Keep motor_UPDRS as a feature. It is part of the score to predict, and nearly determines it.
    subject : bool
        Keep the number of the patient as a feature.

    Returns
    -------
    Dataset
        Standardised rows and ranks 1..4.

    Notes
    -----
    The paper's 22 features are all columns of the file, including the target. Here there are 19,
    or 21 with both options.
    """
    names, table, source = unpack_table("parkinson")
    is_kept = {"total_UPDRS": False, "motor_UPDRS": motor_updrs, "subject#": subject}
    columns = [column for column, name in enumerate(names) if is_kept.get(name, True)]
    ranks = bin_ranks(table[:, names.index("total_UPDRS")], PARKINSON_EDGES)
    features = tuple(names[column] for column in columns)
    return Dataset(
        "parkinson", standardise(table.take(columns, axis=1)), ranks, 4, features, source
    )


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


def income() -> dict[str, NDArray[Any]]:
    """Household incomes of 12185 people in nine surveys, as brackets on three scales.

    Six surveys asked in five bands, two in ten, and one in four whose edges do not align with the
    others': nearly every label is a range of the eleven bands between all edges.

    Returns
    -------
    dict
        The columns of a table, for ``pandas.DataFrame`` or ``polars.DataFrame``: ``survey``,
        ``sex``, ``age`` (in four bands), ``education`` (in the words of the survey) and ``region``
        are text, None without an answer; ``lower`` and ``upper`` are the ends in dollars of a
        half-open bracket, the last of which is infinite. `ordspan.brackets` makes labels of them.

    Notes
    -----
    FiveThirtyEight published the surveys, see https://github.com/fivethirtyeight/data, under the
    licence CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/). Here they are in one table,
    without the people who did not tell their income, with ages in the four bands of eight of the
    surveys, whose 45-60 and > 60 are 45-59 and 60+.

    Examples
    --------
    >>> from ordspan import brackets
    >>> from ordspan.datasets import income
    >>> table = income()
    >>> table["survey"][3000], table["age"][3000], table["lower"][3000], table["upper"][3000]
    ('nonvoters', '60+', np.float64(75000.0), np.float64(125000.0))
    >>> y, classes = brackets(table["lower"], table["upper"])
    >>> len(classes), y[3000].tolist()
    (11, ['75k to 100k', '100k to 125k'])
    """
    packed = load_packed("income")
    columns = {}
    for name, codes in zip(INCOME_COLUMNS, packed["codes"], strict=True):
        words = packed[name]
        if words.dtype.kind == "U":
            words = np.array([word or None for word in words.tolist()], dtype=object)
        columns[name] = words[codes]
    return columns
