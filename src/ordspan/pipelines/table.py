"""The transformers that model files can store: their fitted attributes and valid values.

A new one is a line of `TRANSFORMERS`: its module, its fitted attributes, and a function that sets
those which scikit-learn derives from them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from string import Formatter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Check = Callable[[Any, dict[str, int]], bool]
"""Whether a value is valid for an attribute, given the sizes known so far: d features, ..."""


def array(shape: str, kinds: str = "f", *, optional: bool = False) -> Check:
    """An array whose axes have the sizes named by letters; a new letter defines a new size."""

    def fits(value: Any, sizes: dict[str, int]) -> bool:
        if value is None:
            return optional
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            return False
        if value.ndim != len(shape):
            return False
        known = [sizes.setdefault(axis, n) for axis, n in zip(shape, value.shape, strict=True)]
        return known == list(value.shape)

    return fits


def counts(value: Any, sizes: dict[str, int]) -> bool:
    """A row count, or one for each feature."""
    numbers = np.asarray(value)
    return numbers.dtype.kind in "iuf" and numbers.shape in ((), (sizes["d"],))


def columns(value: Any, sizes: dict[str, int]) -> bool:
    """Indices of some features."""
    if not array("c", "iu")(value, {}):
        return False
    return bool(((value >= 0) & (value < sizes["d"])).all())


def categories(value: Any, sizes: dict[str, int]) -> bool:
    """One array for each feature; sorted, since they are searched, unless they are looked up."""
    return (
        isinstance(value, list)
        and len(value) == sizes["d"]
        and all(array("k", "biufUO")(one, {}) and one.size > 0 for one in value)
        and all(one.dtype == object or _is_sorted(one) for one in value)
    )


def _is_sorted(values: NDArray[Any]) -> bool:
    return np.array_equal(np.unique(values), values, equal_nan=values.dtype.kind == "f")


def dtype(value: Any, sizes: dict[str, int]) -> bool:
    """A type of numbers, or of objects."""
    return isinstance(value, np.dtype) and value.kind in "iufO"


def refuse_other_range(scaler: Any) -> None:
    """Refuse a range that is not two numbers; scikit-learn only checks it in ``fit``."""
    low, high = scaler.feature_range
    if not (isinstance(low, int | float) and isinstance(high, int | float) and low < high):
        raise ValueError(f"feature_range={scaler.feature_range!r}")


def count_outputs(nystroem: Any) -> None:
    """Nystroem has one output for each component."""
    from sklearn.metrics.pairwise import KERNEL_PARAMS

    known = KERNEL_PARAMS.get(nystroem.kernel, ())
    for name, value in (nystroem.kernel_params or {}).items():
        if name not in known or not isinstance(value, int | float):
            raise ValueError(f"kernel_params={nystroem.kernel_params!r}")
    nystroem._n_features_out = nystroem.normalization_.shape[0]


def count_categories(encoder: Any) -> None:
    """The columns of each feature, and which of them are dropped."""
    if np.dtype(encoder.dtype).kind not in "biuf":
        raise ValueError(f"dtype={encoder.dtype!r}")
    if encoder.min_frequency is not None or encoder.max_categories is not None:
        raise ValueError("infrequent categories")
    encoder._infrequent_enabled = False
    encoder._set_drop_idx()
    encoder._n_features_outs = encoder._compute_n_features_outs()


def flag(value: Any, sizes: dict[str, int]) -> bool:
    """A boolean."""
    return isinstance(value, bool)


def set_n_features(indicator: Any) -> None:
    """An indicator counts its features twice."""
    indicator._n_features = indicator.n_features_in_


def nothing(step: Any) -> None:
    """Nothing is derived."""


class Entry(NamedTuple):
    """Module of a transformer class, its fitted attributes, and attributes derived from them."""

    module: str
    fitted: dict[str, Check]
    derive: Callable[[Any], None] = nothing
    derived: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()  # attributes that are transformers, or None

    def find(self, name: str) -> Any:
        """Import the class."""
        return getattr(import_module(self.module), name)


MAYBE = array("d", optional=True)
TRANSFORMERS = {
    "FunctionTransformer": Entry("sklearn.preprocessing", {}),  # without a function
    "MaxAbsScaler": Entry(
        "sklearn.preprocessing",
        {"max_abs_": array("d"), "scale_": array("d"), "n_samples_seen_": counts},
    ),
    "MinMaxScaler": Entry(
        "sklearn.preprocessing",
        dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), array("d"))
        | {"n_samples_seen_": counts},
        refuse_other_range,
    ),
    "MissingIndicator": Entry(
        "sklearn.impute",
        {"features_": columns, "_precomputed": flag},
        set_n_features,
        ("_n_features",),
    ),
    "Nystroem": Entry(
        "sklearn.kernel_approximation",
        {
            "components_": array("md"),
            "normalization_": array("mm"),
            "component_indices_": array("m", "i"),
        },
        count_outputs,
        ("_n_features_out",),
    ),
    "OneHotEncoder": Entry(
        "sklearn.preprocessing",
        {"categories_": categories},
        count_categories,
        ("_infrequent_enabled", "_drop_idx_after_grouping", "drop_idx_", "_n_features_outs"),
    ),
    "RobustScaler": Entry("sklearn.preprocessing", {"center_": MAYBE, "scale_": MAYBE}),
    "SimpleImputer": Entry(
        "sklearn.impute",
        {"statistics_": array("d", "biufO"), "_fit_dtype": dtype, "_fill_dtype": dtype},
        inside=("indicator_",),
    ),
    "StandardScaler": Entry(
        "sklearn.preprocessing",
        {"mean_": MAYBE, "var_": MAYBE, "scale_": MAYBE, "n_samples_seen_": counts},
    ),
}
NESTED = ("ColumnTransformer", "Pipeline")
KNOWN = sorted([*TRANSFORMERS.keys() - {"MissingIndicator", "FunctionTransformer"}, *NESTED])


def refuse_other_names(names: Any) -> None:
    """Refuse output name formats except the standard one, as they could use much memory."""
    if isinstance(names, str):
        for _, field, spec, conversion in Formatter().parse(names):
            if field not in (None, "transformer_name", "feature_name") or spec or conversion:
                raise ValueError(f"verbose_feature_names_out={names!r}")
