"""`TableEncoder`: the features of ordspan train, as a transformer in a Pipeline."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from ordspan import OrdinalPA, TableEncoder, load, train_files


def flats(n=300, seed=0):
    rng = np.random.default_rng(seed)
    size, town = rng.normal(70, 20, n), rng.integers(0, 3, n)
    rent = np.where(rng.random(n) < 0.1, np.nan, 10 * size + rng.normal(0, 50, n))
    grade = np.digitize(size / 20 + town + rng.normal(0, 0.3, n), [3, 4, 5]) + 1
    columns = {"id": [f"f{i}" for i in range(n)], "size": size, "rent": rent}
    return pd.DataFrame(columns | {"town": np.array(["Ulm", "Bonn", "Graz"])[town]}), grade


def test_features_are_those_of_a_model_trained_from_the_same_file(tmp_path):
    table, grade = flats()
    table.assign(grade=grade).to_csv(tmp_path / "a.csv", index=False)
    train_files(tmp_path / "a.csv", tmp_path / "m", label="grade", shuffle=False)
    model, encoder = load(tmp_path / "m"), TableEncoder().fit(table)
    assert list(encoder.get_feature_names_out()) == [*model.coef]
    assert encoder.left_out_ == {"id": "every value is different, like an id"}
    X = encoder.transform(table)
    np.testing.assert_allclose(model.learner.latent(X), model.latent(table), rtol=1e-9)
    new = pd.DataFrame({"size": [1e9, None], "rent": [700, 700], "town": ["Rom", "Rom"]})
    message = (
        r": town = 'Rom' \(2 rows\), size is missing, and filled \(1 row\), size is more than 20 "
    )
    for answer in (model.predict, encoder.transform):
        with pytest.warns(UserWarning, match=message) as warned:
            answer(new)
        assert len(warned) == 1


def test_every_kind_of_table_gives_the_same_features():
    table, _ = flats()
    table.loc[7, "town"] = None
    X = TableEncoder(drop="id").fit_transform(table)
    frame = pl.from_pandas(table)
    records = frame.to_dicts(), table.to_dict("records")  # the missing town is None, and NaN
    for other in (frame, pa.Table.from_pandas(table), *records):
        np.testing.assert_allclose(TableEncoder().fit(other).transform(other), X)
    np.testing.assert_allclose(TableEncoder().fit(table).transform(table[:5]), X[:5])


def test_it_works_in_a_pipeline_and_a_grid_search():
    table, grade = flats()
    model = make_pipeline(TableEncoder(), OrdinalPA(random_state=0))
    search = GridSearchCV(model, {"tableencoder__hashed": [(), ("town",)]}, cv=3)
    search.fit(table, grade)
    assert search.best_score_ > -0.5
    assert clone(model).get_params()["tableencoder__missing"] == "mean"


def test_rows_learned_in_parts_give_the_scale_of_all():
    table, _ = flats()
    parts = TableEncoder()
    for begin in range(0, 300, 60):
        parts.partial_fit(table[begin : begin + 60])
    whole = TableEncoder(hashed=["town"]).fit(table)
    new, _ = flats(20, seed=1)
    found, expected = (one.transform(new).toarray()[:, :2] for one in (parts, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_word_among_numbers_is_named_by_its_row():
    table, _ = flats()
    encoder = TableEncoder().fit(table)
    bad = table[:5].astype({"size": str})
    bad.loc[3, "size"] = "large"
    with pytest.raises(ValueError, match=r"row 3: column 'size' holds 'large', not a number"):
        encoder.transform(bad)
    with pytest.raises(ValueError, match="more than one column is named 'a'"):
        TableEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TypeError, match=r"ndarray has no named columns.* or a list of dicts$"):
        TableEncoder().fit(np.eye(3))
    with pytest.raises(ValueError, match="no columns 'rent', 'town'"):
        encoder.transform(table[["size"]])
