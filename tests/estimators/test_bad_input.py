"""Bad input gets an error that names the place and the way out, and the model stays as it was."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from examples import KINDS, graded, numbers

from ordspan import CalibratedOrdinal, KernelOrdinalPA, OrdinalPA, OrdinalSVM

X, Y, SPANS = graded(n=60)


def with_value(value, row=17, column=2):
    rows = X.copy()
    rows[row, column] = value
    return rows


def all_of(model):
    """Every attribute, and what was learned as bytes."""
    attributes = {name: v for name, v in vars(model).items() if not name.startswith("_learned")}
    return attributes | {"learner_": numbers(model).tobytes()}


BAD_ROWS = [
    (with_value(np.nan), "NaN: row 17, column 2"),
    (with_value(np.inf), "infinity.*row 17, column 2"),
    (sp.csr_array(with_value(-np.inf)), "row 17, column 2"),
    (pd.DataFrame(with_value(np.nan), columns=list("abcd")), r"row 17, column 2 \('c'\)"),
    (with_value(1e160), "row 17: .*overflow.*StandardScaler"),
    (X[:0], "0 sample"),
    (X[:, :0], "0 feature"),
    (X[0], "Expected 2D array"),
]


@pytest.mark.parametrize(
    ("kind", "method"),
    [*product([*KINDS, CalibratedOrdinal], ["fit", "partial_fit"]), (OrdinalSVM, "fit")],
)
@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_bad_rows_are_named_and_change_nothing(kind, method, rows, message):
    good = pd.DataFrame(X, columns=list("abcd")) if isinstance(rows, pd.DataFrame) else X
    model = kind(random_state=0).fit(good, SPANS)
    before = all_of(model)
    labels = SPANS if rows.shape[0] == 60 else SPANS[:0]
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(rows, labels)
    assert all_of(model) == before


BAD_LABELS = [
    (
        np.where(np.arange(60)[:, None] == 5, [3, 1], SPANS),
        "row 5: lower end 3 is above upper end 1; .* two people's votes",
    ),
    (np.where(np.arange(60) == 9, 8, Y), r"row 9: label 8 is not one of the grades \[1, 2, 3, 4"),
    (Y[:-1], "inconsistent numbers of samples"),
    (np.column_stack([Y, Y, Y]), r"shape \(60, 3\)"),
    (np.where(np.arange(60) == 4, np.nan, Y), "row 4"),
    (None, "requires y"),
]


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("labels", "message"), BAD_LABELS)
def test_bad_labels_are_named_and_change_nothing(calibrated, method, labels, message):
    model = OrdinalPA(classes=[1, 2, 3, 4], random_state=0)
    model = (CalibratedOrdinal(model) if calibrated else model).fit(X, SPANS)
    before = all_of(model)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, labels)
    assert all_of(model) == before


NOT_BOOL = "must be an instance of 'bool'"
BAD_PARAMETERS = {
    OrdinalPA: [
        ("C", 0.0, "'C' parameter of OrdinalPA must be a float in the range"),
        *(("C", C, "'C' parameter") for C in (-1, np.nan, np.inf, "1")),
        ("variant", "PA-III", "unknown variant 'PA-III'; choose one of PA, PA-I"),
        ("solver", "sca", "solver='sca' is the paper.s printed search, .*balanced=False"),
        ("solver", "newton", "unknown solver 'newton'; choose one of exact, sca"),
        ("max_iter", 0, r"'max_iter' .*must be an int in the range \[1, inf\)"),
        ("max_iter", 1.5, "'max_iter' .*must be an int"),
        *(("average", value, NOT_BOOL) for value in (None, "yes", 0.5)),
        *(("balanced", value, NOT_BOOL) for value in (None, "yes", 0.5)),
        ("classes", [1, 2, 2], "more than once"),
        ("class_weight", {9: 1.0}, r"names 9, which is not one of the grades \[1, 2, 3, 4\]"),
        ("class_weight", {1: -1.0}, "class_weight of 1 must be a finite number >= 0, got -1.0"),
        *(("class_weight", {1: value}, "must be a finite number") for value in (np.nan, "x")),
        ("class_weight", "heavy", "must be None, .*'dict' or a str among .'balanced'"),
        ("class_weight", [1, 2, 3, 4], "'class_weight' .*must be None"),
    ],
    KernelOrdinalPA: [
        *(("kernel", value, "unknown kernel .*Nystroem") for value in ("cubic", 3, np.dot)),
        *(("budget", value, "budget must be a whole number >= 1") for value in (0, 2.5, True)),
        ("gamma", "wide", "'gamma' .*must be a str among .*Got 'wide'"),
        *(("gamma", value, "'gamma' .*must be") for value in (0.0, -1.0, None)),
        *(("degree", value, "needs a finite degree of at least 1") for value in (0.5, np.inf)),
        *(("coef0", value, "needs a finite coef0") for value in (np.nan, -np.inf)),
        ("average", None, NOT_BOOL),
    ],
    OrdinalSVM: [
        ("loss", "log", "'loss' .*must be a str among"),
        ("tol", 0, "'tol' .*must be a float in the range"),
    ],
    CalibratedOrdinal: [
        ("labels", "all", "unknown labels 'all'; choose one of expected, contain"),
        ("coverages", [2.0], "coverages must be distinct numbers between 0 and 1"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [(kind, *bad) for kind, wrong in BAD_PARAMETERS.items() for bad in wrong],
)
def test_bad_parameters_say_what_would_be_right_and_change_nothing(kind, name, value, message):
    new = kind(random_state=0).set_params(**{name: value})
    fitted = kind(random_state=0).fit(X, Y)
    before = numbers(fitted).tobytes()
    calls = [new.fit, fitted.set_params(**{name: value}).fit]
    if hasattr(kind, "partial_fit"):
        classes = None if name == "classes" else [1, 2, 3, 4]
        calls.append(lambda *rows: new.partial_fit(*rows, classes))
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(X, Y)
    assert not [attribute for attribute in vars(new) if attribute.endswith("_")]
    assert numbers(fitted).tobytes() == before


def test_sample_weights_are_checked_and_a_batch_without_weight_changes_nothing():
    model = OrdinalPA(random_state=0).fit(X, Y)
    before = model.learner_.state.copy()
    for weight in (-np.ones(60), np.full(60, np.nan), np.ones(3)):
        for call in (model.fit, model.partial_fit, model.score):
            with pytest.raises(ValueError, match="sample_weight"):
                call(X, Y, sample_weight=weight)
    for call in (model.fit, model.score, OrdinalPA(class_weight=dict.fromkeys(range(1, 5), 0)).fit):
        with pytest.raises(ValueError, match="zero for every row"):
            call(X, Y, sample_weight=np.zeros(60))
    model.partial_fit(X, Y, sample_weight=np.zeros(60))
    np.testing.assert_array_equal(model.learner_.state, before)


def test_a_new_grade_leads_to_a_new_model_not_to_a_list_that_is_refused():
    model = OrdinalPA()
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        model.partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"label 3 is not .* with every grade in classes="):
        model.partial_fit([[0.0]], [3], classes=[1, 2])
    model.partial_fit([[0.0]], [1], classes=[1, 2])
    for learn_or_score in (model.partial_fit, model.score):
        with pytest.raises(ValueError, match=r"label 3 .*leave the row out, or start anew"):
            learn_or_score([[0.0]], [3])
        with pytest.raises(ValueError, match=r"row 0: label '1-2' .*ordspan.parse_intervals\(y"):
            learn_or_score([[0.0]], ["1-2"])
    with pytest.raises(ValueError, match=r"differ .*leave classes out, or start a new model"):
        model.partial_fit([[0.0]], [3], classes=[1, 2, 3])
    with pytest.raises(ValueError, match=r"label 3 is not .* with every grade"):
        model.set_params(classes=[1, 2]).fit([[0.0]], [3])


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_refuses_what_learning_refuses(kind):
    model = kind().fit(X, Y)
    with pytest.raises(ValueError, match="NaN: row 17, column 2"):
        model.predict(with_value(np.nan))
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(X[:, :3], Y)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(city="Pune")
    with pytest.raises(ValueError, match=r"column 'city' of X has .*Pune.*OneHotEncoder"):
        kind().fit(frame, Y)


def test_numbers_out_of_reach_are_named():
    """tests/fuzz/calls.py tries any numbers at the ends of what a float holds."""
    with pytest.raises(ValueError, match=r"row 1: sample_weight 1e\+308 .* 0 to 1e\+150; .*divide"):
        OrdinalPA().fit([[1.0], [2.0]], [1, 2], sample_weight=[1.0, 1e308])
    with pytest.raises(ValueError, match=r"C = 1e\+300, .* is 4e\+300"):
        OrdinalSVM(C=1e300).fit([[1.0], [2.0]], [1, 2])
