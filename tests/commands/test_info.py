"""`ordspan info`: what a model file is said to hold is what it holds."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import ordspan
from commands.tables import FEATURES, GRADES, ratings, said, stopped, summary, trained, write_table
from estimators.examples import ESTIMATORS, graded
from ordspan import CalibratedOrdinal, MulticlassPA, OrdinalPA, OrdinalSVM, save
from ordspan.models.file import FORMAT_VERSION

X, Y, SPANS = graded()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("info"), "--passes", "2")


def info_of(path):
    """What the command says of a model to programs, and to people."""
    return summary("info", path, "--top", "0"), said("info", path)


def test_all_of_a_model_of_files_is_told(model):
    told, shown = info_of(model)
    loaded = ordspan.load(model)
    assert (told["kind"], told["estimator"]) == ("model", "OrdinalPA")
    assert (told["format"], told["bytes"]) == (FORMAT_VERSION, model.stat().st_size)
    assert (told["parameters"]["C"], told["classes"], told["features"]) == (0.1, GRADES, 2 + 3)
    rows = ratings().to_pandas()
    at = np.searchsorted(told["thresholds"], loaded.latent(rows), side="right")
    assert [GRADES[rank] for rank in at] == loaded.predict(rows).tolist()
    assert told["columns"]["words"] == {"town": sorted(set(ratings()["town"].to_pylist()))}
    assert (told["columns"]["missing_indicators"], told["columns"]["hashed"]) == ([], [])
    assert told["training"]["rows"] == 2 * 240  # of 300 rows a fifth is kept to calibrate
    assert told["training"]["settings"]["files"] == [f"{model}-train.csv"]
    assert len(told["training"]["mae"]) == told["passes"] == 2
    sizes = [abs(row["weight"]) for row in told["weights"]]
    assert sizes == sorted(np.abs(loaded.estimator.coef_).tolist(), reverse=True)
    for words in ("OrdinalPA", "variant=PA-I", "words of town +3", "rows learned +480"):
        assert re.search(words, shown)
    edge = f"{told['thresholds'][0]:.6g}"
    assert shown.count(edge) == 2  # where one grade ends and the next begins


def test_weights_stand_beside_the_mean_and_spread_of_their_feature(model):
    rows = {row["feature"]: row for row in info_of(model)[0]["weights"]}
    seen = ratings().select(FEATURES).to_pandas()
    for j, name in enumerate(FEATURES):
        assert rows[name]["weight"] == ordspan.load(model).estimator.coef_[j]
        assert rows[name]["mean"] == pytest.approx(seen[name].mean(), rel=1e-12)
        assert rows[name]["spread"] == pytest.approx(seen[name].std(ddof=0), rel=1e-12)
    assert rows["town = Ulm"]["spread"] is None
    output = said("info", model, "--top", "1")
    assert "1 of 5 features; a weight is the change in score per standard" in output
    assert "Ulm" not in output.split("Largest weights")[1]


def test_hashed_words_and_svmlight_features_are_named_by_their_place(tmp_path):
    told, shown = info_of(trained(tmp_path, "--hash", "town", "--hash-bits", "5"))
    assert (told["columns"]["words"], told["columns"]["hashed"]) == ({}, ["town"])
    rows = {row["feature"]: row for row in told["weights"]}
    assert (told["features"], rows["hash 3 of town"]["spread"]) == (2 + 2**5, None)
    assert re.search("hashed words of town +32", shown)
    (tmp_path / "a.svm").write_text("1 1:2 3:1\n2 2:4\n" * 20)
    said("train", tmp_path / "a.svm", "--model", tmp_path / "sparse")
    told, shown = info_of(tmp_path / "sparse")
    rows = {row["feature"]: row for row in told["weights"]}
    assert set(rows) == {"feature 1", "feature 2", "feature 3"}
    assert (rows["feature 2"]["mean"], rows["feature 2"]["spread"]) == (0.0, 4.0)
    assert re.search("svmlight features +3", shown)


def test_the_calibration_is_the_one_of_the_model(model):
    told, shown = info_of(model)
    told, held = told["calibration"], ordspan.load(model).calibration
    assert (told["rows"], told["labels"], told["reach_unit"]) == (60, "expected", "score")
    assert (told["slope"], told["cuts"]) == (held.slope, held.cuts.tolist())
    ranges = zip(held.coverages.tolist(), held.reach.tolist(), strict=True)
    finite = [{"coverage": c, "reach": r if r < np.inf else None} for c, r in ranges]
    assert told["ranges"] == finite
    assert "Calibrated on 60 rows: the probability of a grade or a lower one is" in shown
    assert f"1 / (1 + exp({held.slope:.6g} * score - cut))" in shown
    for line in (f"low .* {held.cuts[0]:.6g}", f"90 % +{held.reach[2]:.6g}"):
        assert re.search(line, shown)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_calibrated_estimator_is_told_with_its_calibration(tmp_path, frozen):
    ranker = OrdinalPA(random_state=0).fit(X, Y)
    around = CalibratedOrdinal(FrozenEstimator(ranker) if frozen else ranker, labels="contain")
    save(around.fit(X[:40], Y[:40]), tmp_path / "model")
    told, shown = info_of(tmp_path / "model")
    assert (told["estimator"], told["features"]) == ("OrdinalPA", X.shape[1])
    held = told["calibration"]
    assert (held["rows"], held["labels"], held["reach_unit"]) == (40, "contain", "score")
    # 40 rows are too few for 99 %: such a range holds all grades
    assert [found["reach"] is None for found in held["ranges"]] == [False] * 4 + [True]
    assert re.search("99 % +all grades", shown)
    assert "Ranges are calibrated to contain whole labels" in shown


@pytest.mark.parametrize("estimator", [*ESTIMATORS, OrdinalSVM()], ids=lambda e: type(e).__name__)
def test_every_estimator_saved_from_python_is_told(estimator, tmp_path):
    fitted = clone(estimator).fit(X, SPANS)
    save(fitted, tmp_path / "model")
    told, shown = info_of(tmp_path / "model")
    assert told["estimator"] == type(estimator).__name__
    assert (told["columns"], told["training"], told["checkpoint"]) == (None, None, None)
    assert (told["thresholds"] is None) == (not hasattr(fitted, "thresholds_"))
    assert told["updates"] == getattr(fitted, "n_updates_", None)
    numbers = vars(fitted).keys() & {"gamma_", "primal_value_", "dual_value_", "duality_gap_"}
    assert told["fitted"] == {n.rstrip("_"): getattr(fitted, n) for n in numbers}
    assert all(name.replace("_", " ") in shown for name in told["fitted"])
    if not hasattr(fitted, "coef_"):  # a kernel that is not linear has no weights
        assert (told["weights"], told["support_vectors"]) == (None, fitted.dual_coef_.size)
        return
    weights = {row["feature"]: row["weight"] for row in told["weights"]}
    assert weights == {f"column {j}": fitted.coef_[..., j].tolist() for j in range(4)}
    assert "per unit of the feature" in shown


def test_names_are_shown_as_they_are_and_a_vector_per_grade_has_a_column(tmp_path):
    names, grades = ["[red]size", ":smile:", "a\\b", "plain"], np.array(["aa", "bb", "cc", "dd"])
    fitted = MulticlassPA(classes=grades, random_state=0)
    save(fitted.fit(pd.DataFrame(X, columns=names), grades[Y - 1]), tmp_path / "model")
    weights = info_of(tmp_path / "model")[1].split("Largest weights")[1]
    assert weights.split("\n")[2].split() == ["feature", *grades]
    assert all(name in weights for name in names)


def test_a_checkpoint_says_how_far_it_came(tmp_path):
    path = write_table(ratings(), tmp_path / "a.csv")
    words = ["train", path, "--label", "grade", "--grades", ",".join(GRADES), "--drop", "id,town"]
    every = ["--passes", 3, "--checkpoint-every", 100]
    stopped(*words, *every, "--model", tmp_path / "model", checkpoints=4)
    told, shown = info_of(tmp_path / "model.checkpoint")
    assert told["kind"] == "checkpoint"
    assert told["checkpoint"]["rows"] == told["training"]["rows"] == 440
    assert (told["checkpoint"]["pass"], told["checkpoint"]["passes"]) == (2, 3)
    assert told["checkpoint"]["rows_of_pass"] == 200
    for about in ("rows +440", "pass +2", "passes +3", "continue with +ordspan train --resume"):
        assert re.search(f"checkpoint {about}", shown)
    said("predict", path, "--model", tmp_path / "model.checkpoint")
    stopped(*words, *every, "--learner", "kernel", "--model", tmp_path / "k", checkpoints=4)
    printed = said("predict", path, "--model", tmp_path / "k.checkpoint", code=1)
    assert "calibrates its probabilities at the end; finish it with" in printed
