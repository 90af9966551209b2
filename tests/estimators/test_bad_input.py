"""Bad input gets an error that names the place and the way out, and the model stays as it was."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from examples import KINDS, graded
from sklearn.exceptions import NotFittedError

from ordspan import KernelOrdinalPA, OrdinalPA

X, Y, SPANS = graded(n=60)


def with_value(value, row=17, column=2):
    rows = X.copy()
    rows[row, column] = value
    return rows


def state(model):
    return {
        name: value
        for name, value in vars(model).items()
        if not name.startswith(("learner", "_learned"))
    }


BAD_ROWS = [
    (with_value(np.nan), "NaN: row 17, column 2"),
    (with_value(np.inf), "infinity.*row 17, column 2"),
    (sp.csr_array(with_value(-np.inf)), "row 17, column 2"),
    (np.asfortranarray(with_value(np.nan)), "NaN: row 17, column 2"),
    (pd.DataFrame(with_value(np.nan), columns=list("abcd")), r"row 17, column 2 \('c'\)"),
    (with_value(1e160), "row 17: .*overflow.*StandardScaler"),
    (X[:0], "0 sample"),
    (X[:, :0], "0 feature"),
    (X[0], "Expected 2D array"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_bad_rows_are_named_and_change_nothing(kind, method, rows, message):
    good = pd.DataFrame(X, columns=list("abcd")) if isinstance(rows, pd.DataFrame) else X
    model = kind(random_state=0).fit(good, SPANS)
    before, memory = state(model), model.learner_.memory.copy()
    decision = model.decision_function(good)
    labels = SPANS if rows.shape[0] == 60 else SPANS[:0]
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(rows, labels)
    assert state(model) == before
    np.testing.assert_array_equal(model.learner_.memory, memory)
    np.testing.assert_array_equal(model.decision_function(good), decision)


def upside_down():
    spans = SPANS.copy()
    spans[5] = 3, 1
    return spans


BAD_LABELS = [
    (upside_down(), "row 5: lower end 3 is above upper end 1; .* two people's votes"),
    (np.where(np.arange(60) == 9, 8, Y), r"row 9: label 8 is not one of the grades \[1, 2, 3, 4"),
    (Y[:-1], "inconsistent numbers of samples"),
    (np.column_stack([Y, Y, Y]), r"shape \(60, 3\)"),
    (Y.reshape(3, 4, 5), "shape"),
    (Y + 0.5, "row 0: label .* is not one of the grades"),
    (np.where(np.arange(60) == 4, np.nan, Y), "row 4"),
    (np.array(["a"] * 60), "row 0: label 'a' is not one of the grades"),
    (None, "requires y"),
    ([[1, 2]] * 59 + [[1]], "some rows differ"),
]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("labels", "message"), BAD_LABELS)
def test_bad_labels_are_named_and_change_nothing(method, labels, message):
    model = OrdinalPA(classes=[1, 2, 3, 4], random_state=0).fit(X, SPANS)
    before, memory = state(model), model.learner_.memory.copy()
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, labels)
    assert state(model) == before
    np.testing.assert_array_equal(model.learner_.memory, memory)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C must be a finite number above 0"),
        ({"C": -1}, "C must be"),
        ({"C": np.nan}, "C must be"),
        ({"C": np.inf}, "C must be"),
        ({"C": "1"}, "C must be"),
        ({"variant": "PA-III"}, "unknown variant 'PA-III'; choose one of PA, PA-I, PA-II"),
        ({"solver": "sca"}, "solver='sca' is the paper.s printed search, .*balanced=False"),
        ({"solver": "newton"}, "unknown solver 'newton'; choose one of exact, sca"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"classes": [1]}, "at least 2 classes"),
        ({"classes": [1, 2, 2]}, "more than once"),
        ({"classes": [[1, 2], [3, 4]]}, "1-d"),
    ],
)
def test_bad_parameters_say_what_would_be_right(parameters, message):
    model = OrdinalPA(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_first_partial_fit_needs_the_classes_and_later_ones_must_agree():
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        OrdinalPA().partial_fit(X, Y)
    model = OrdinalPA().partial_fit(X, Y, classes=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.partial_fit(X, Y, classes=[1, 2, 3])


def test_a_new_grade_leads_to_a_new_model_not_to_a_list_that_is_refused():
    model = OrdinalPA()
    with pytest.raises(ValueError, match=r"label 3 is not .* list every grade in classes="):
        model.partial_fit([[0.0]], [3], classes=[1, 2])
    model.partial_fit([[0.0]], [1], classes=[1, 2])
    for learn_or_score in (model.partial_fit, model.score):
        with pytest.raises(ValueError, match=r"label 3 .*leave the row out, or start a new model"):
            learn_or_score([[0.0]], [3])
    with pytest.raises(ValueError, match=r"differ .*leave classes out, or start a new model"):
        model.partial_fit([[0.0]], [3], classes=[1, 2, 3])
    with pytest.raises(ValueError, match=r"label 3 is not .* list every grade"):
        model.set_params(classes=[1, 2]).fit([[0.0]], [3])


def test_a_text_column_is_named():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(city="Pune")
    with pytest.raises(ValueError, match=r"column 'city' of X has .*Pune.*OneHotEncoder"):
        OrdinalPA().fit(frame, Y)


def test_sample_weights_are_checked():
    for weight in (-np.ones(60), np.full(60, np.nan), np.ones(3)):
        with pytest.raises(ValueError):
            OrdinalPA().fit(X, Y, sample_weight=weight)


def test_intervals_open_on_one_side_are_refused():
    spans = pd.arrays.IntervalArray.from_arrays(SPANS[:, 0], SPANS[:, 1] + 1, closed="left")
    with pytest.raises(ValueError, match="closed='both'"):
        OrdinalPA().fit(X, spans)


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_refuses_what_learning_refuses(kind):
    model = kind().fit(X, Y)
    with pytest.raises(ValueError, match="NaN: row 17, column 2"):
        model.predict(with_value(np.nan))
    for refused in (model.predict, lambda rows: model.partial_fit(rows, Y)):
        with pytest.raises(ValueError, match="3 features"):
            refused(X[:, :3])


@pytest.mark.parametrize("value", [None, "yes", np.nan, 0.5, {}])
def test_what_is_neither_true_nor_false_is_refused_before_it_cannot_be_saved(value):
    X, y, _ = graded(30)
    for model in (
        OrdinalPA(average=value),
        OrdinalPA(balanced=value),
        KernelOrdinalPA(average=value),
    ):
        with pytest.raises(ValueError, match="must be True or False, got"):
            model.fit(X, y)
    assert OrdinalPA(average=np.True_, balanced=1).fit(X, y).classes_.size == 4
