"""``OrdinalSVM(loss="squared_hinge", C=0.1)``: the two losses over a grid of C."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from defaults.folds import Size, constant_error, mae
from defaults.tables import Errors, Found, by_row, markdown, marked, measured, where, worse
from measuring import seconds
from ordspan import OrdinalSVM
from ordspan.data import Dataset
from peers.measure import chosen
from peers.methods import Method, over
from peers.plan import Fold, Plan

SVM_PERCENTS = (0, 50, 75, 100)
LOSSES = HINGE, SQUARED = "hinge", "squared_hinge"
FIELDS = ("mae", "one grade", "not converged", "seconds")
SVM_GRID, TUNING_GRID, SVM_C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (0.01, 0.1, 1.0, 10.0), 0.1


def svm(n_features: int, n_classes: int, C: float, loss: str) -> OrdinalSVM:
    return OrdinalSVM(C, loss=loss, classes=np.arange(1, n_classes + 1))


def fit_svm(model: OrdinalSVM, fold: Fold) -> list[float]:
    """Test MAE, whether all rows get the same grade, whether it did not converge, and the time."""
    took = seconds(lambda: model.fit(fold.X, fold.y))
    error = mae(model.predict(fold.X_test), fold.ranks_test)
    one_grade = np.unique(model.predict(fold.X)).size == 1
    return [error, one_grade, model.duality_gap_ > model.tol, took]


def svm_fits(data: Dataset, fold: Fold) -> dict[Any, Any]:
    """Results of one fold: `FIELDS` by loss and C (or "tuned"), and the error of the constant."""
    found: dict[Any, Any] = {"constant": constant_error(data, fold)}
    for loss in LOSSES:
        make = partial(svm, loss=loss)
        fits = {C: fit_svm(make(data.X.shape[1], data.n_classes, C), fold) for C in SVM_GRID}
        method = Method(loss, "ordspan", make, over("C", *TUNING_GRID), reads_intervals=True)
        fits["tuned"] = fits[chosen(method, data, fold, Plan())["C"]]
        found |= {(name, loss, C): fits[C][k] for C in fits for k, name in enumerate(FIELDS)}
    return found


def compare_losses(tables: list[Dataset], size: Size) -> Found:
    with warnings.catch_warnings():  # the page counts both
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "the model predicts the same grade", UserWarning)
        return measured(tables, SVM_PERCENTS, svm_fits, size, range(1))


def svm_cells(errors: Errors) -> list[str]:
    shown = [marked(errors, ("mae", loss, C)) for C in (SVM_C, "tuned") for loss in LOSSES]
    counts = [errors["one grade", loss, SVM_C] for loss in LOSSES]
    counted = [f"{count.sum():.0f} of {len(count)}" for count in counts]
    return [marked(errors, "constant"), *shown, *counted]


def pooled(found: Found, loss: str, C: Any) -> tuple[float, ...]:
    """Means of `FIELDS` over all rows of the table; each MAE divided by the lowest of its row."""
    fits = np.array([[e[name, loss, C].mean() for name in FIELDS] for e in found.values()])
    grid = list(product(LOSSES, SVM_GRID))
    fits[:, 0] /= [min(errors["mae", *key].mean() for key in grid) for errors in found.values()]
    return tuple(fits.mean(axis=0))


def losses_section(found: Found) -> list[str]:
    titles = "constant | hinge | squared | hinge, tuned | squared, tuned | one grade, hinge"
    by_c = []
    for key in product(LOSSES, (*SVM_GRID, "tuned")):
        error, same, unconverged, took = pooled(found, *key)
        shares = f"{error:.3f}", f"{same:.1%}", f"{unconverged:.1%}", f"{1000 * took:.0f} ms"
        by_c.append([*map(str, key), *shares])
    return [
        '## `OrdinalSVM(loss="squared_hinge", C=0.1)`',
        f"Test MAE at C = {SVM_C:g}, and with C tuned over "
        f"{', '.join(f'{C:g}' for C in TUNING_GRID)} by two-fold cross-validation of the training "
        "rows; in bold if it is above that of the constant prediction, the one grade closest to "
        f"the training labels. The last columns count the fits at C = {SVM_C:g} that give every "
        "training row the same grade.",
        by_row(f"{titles} | one grade, squared", found, svm_cells),
        "The same by C, averaged over the rows of the table. Relative MAE is divided by the lowest "
        "in the row, over both losses and every C; fits that do not converge stop at `max_iter` "
        "before they reach `tol`.",
        markdown("loss | C | relative MAE | one grade | not converged | time per fit", by_c),
        *losses_verdict(found),
    ]


def losses_verdict(found: Found) -> list[str]:
    hinge, squared = ({C: pooled(found, loss, C) for C in SVM_GRID} for loss in LOSSES)
    best = min(SVM_GRID, key=squared.__getitem__)
    same = [share for _, share, _, _ in hinge.values()]
    often = where(found, lambda errors: errors["one grade", HINGE, SVM_C].mean() > 0.5)
    old, new = (("mae", loss, SVM_C) for loss in LOSSES)
    return [
        f"**Chosen: the squared hinge at C = {SVM_C:g}.** Its relative MAE is "
        f"{squared[SVM_C][0]:.3f}, that of the hinge {hinge[SVM_C][0]:.3f}; at the worst C of the "
        f"grid they are {max(squared.values())[0]:.3f} and {max(hinge.values())[0]:.3f}. "
        f"Fits that give every row the same grade: {squared[SVM_C][1]:.0%} with the squared hinge, "
        f"{hinge[SVM_C][1]:.0%} with the hinge ({min(same):.0%} to {max(same):.0%} over all C); "
        f"with the hinge they are the majority on: {often}.",
        f"The lowest relative MAE of the squared hinge is {squared[best][0]:.3f}, at C = {best:g}, "
        f"where {squared[best][2]:.0%} of the fits do not converge ({squared[SVM_C][2]:.0%} at "
        f"C = {SVM_C:g}).",
        f"Drawbacks: a fit takes {squared[SVM_C][3] / hinge[SVM_C][3]:.1f} times as long as "
        "with the hinge at the same C, and its error is more than 1 % higher on: "
        f"{worse(found, new, old)}. It is more than 1 % above the constant on: "
        f"{worse(found, new)}; the hinge on: {worse(found, old)}.",
    ]
