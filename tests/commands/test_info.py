"""`ordspan info`: what a model file is said to hold is what it holds."""

import json
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import ordspan
from commands.tables import FEATURES, GRADES, ask, ratings, trained, write_table
from estimators.examples import ESTIMATORS, graded
from ordspan import CalibratedOrdinal, MulticlassPA, OrdinalPA, OrdinalSVM, save
from ordspan.commands.info import describe_estimator, describe_model
from ordspan.commands.stopping import Stop, Stopped
from ordspan.commands.train import Every, TrainJob, train

X, Y, SPANS = graded()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("info")


@pytest.fixture(scope="module")
def model(folder):
    return trained(folder, "--passes", "2")


@pytest.fixture(scope="module")
def hashed(folder):
    return trained(folder, "--hash", "town", "--hash-bits", "5", name="hashed")


def test_json_tells_all_of_a_model_of_files(model, folder):
    told = json.loads(ask("info", model, "--json", "--top", "0").stdout)
    loaded = ordspan.load(model)
    assert (told["kind"], told["estimator"], told["format"]) == ("model", "OrdinalPA", 3)
    assert told["bytes"] == model.stat().st_size
    assert told["parameters"]["C"] == 0.1
    assert told["classes"] == GRADES
    assert told["thresholds"] == loaded.estimator.thresholds_.tolist()
    assert told["features"] == 2 + 3
    towns = sorted(set(ratings()["town"].to_pylist()))
    assert told["columns"]["words"] == {"town": towns}
    assert (told["columns"]["gaps"], told["columns"]["hashed"]) == ([], [])
    assert told["training"]["rows"] == 600
    assert told["training"]["settings"]["files"] == [str(folder / "model-train.csv")]
    assert len(told["training"]["mae"]) == told["passes"] == 2
    sizes = [abs(row["weight"]) for row in told["weights"]]
    assert sizes == sorted(np.abs(loaded.estimator.coef_).tolist(), reverse=True)


def test_weights_stand_beside_the_mean_and_spread_of_their_feature(model):
    told = describe_model(model, top=0)
    rows = {row["feature"]: row for row in told["weights"]}
    seen = ratings().select(FEATURES).to_pandas()
    for j, name in enumerate(FEATURES):
        assert rows[name]["weight"] == ordspan.load(model).estimator.coef_[j]
        assert rows[name]["mean"] == pytest.approx(seen[name].mean(), rel=1e-12)
        assert rows[name]["spread"] == pytest.approx(seen[name].std(ddof=0), rel=1e-12)
    assert rows["town = Ulm"]["spread"] is None


def test_hashed_words_are_named_by_their_place(hashed):
    told = describe_model(hashed, top=0)
    assert told["features"] == 2 + 2**5
    assert (told["columns"]["words"], told["columns"]["hashed"]) == ({}, ["town"])
    rows = {row["feature"]: row for row in told["weights"]}
    assert rows["hash 3 of town"]["spread"] is None


def test_tables_show_it_to_people_also_in_a_pipe(model):
    output = ask("info", model, "--top", "1").output
    for words in ("OrdinalPA", "variant='PA-I'", "600 (0 bad rows skipped)", "MAE of each pass"):
        assert words in output
    assert "1 of 5 features; a weight is the change in score per standard" in output
    assert "size" in output
    assert "Ulm" not in output.split("Largest weights")[1]
    threshold = ordspan.load(model).estimator.thresholds_[0]
    assert output.count(f"{threshold:.6g}") == 2  # where one grade ends and the next begins


def test_the_calibration_is_the_one_of_the_model(model):
    told = json.loads(ask("info", model, "--json").stdout)["calibration"]
    held = ordspan.load(model).calibration
    assert (told["rows"], told["labels"], told["reach_unit"]) == (300, "expected", "log-odds")
    assert (told["slope"], told["cuts"]) == (held.slope, held.cuts.tolist())
    ranges = zip(held.coverages.tolist(), held.reach.tolist(), strict=True)
    assert told["ranges"] == [{"coverage": c, "reach": r} for c, r in ranges]
    output = ask("info", model).output
    assert "Calibrated on 300 rows: the probability of a grade or a lower one is" in output
    assert f"1 / (1 + exp({held.slope:.6g} * score - cut))" in output
    for line in (f"low .* {held.cuts[0]:.6g}", f"90 % +{held.reach[2]:.6g}"):
        assert re.search(line, output)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_calibrated_estimator_is_told_with_its_calibration(tmp_path, frozen):
    ranker = OrdinalPA(random_state=0).fit(X, Y)
    around = CalibratedOrdinal(FrozenEstimator(ranker) if frozen else ranker, labels="contain")
    save(around.fit(X[:40], Y[:40]), tmp_path / "model")
    told = json.loads(ask("info", tmp_path / "model", "--json").stdout)
    assert (told["estimator"], told["features"]) == ("OrdinalPA", X.shape[1])
    held = told["calibration"]
    assert (held["rows"], held["labels"], held["reach_unit"]) == (40, "contain", "score")
    # 40 rows are too few for 99 %: such a range holds all grades
    assert [found["reach"] is None for found in held["ranges"]] == [False] * 4 + [True]
    output = ask("info", tmp_path / "model").output
    assert re.search("99 % +all grades", output)
    assert "Ranges are calibrated to contain whole labels" in output


def test_a_model_without_a_calibration_shows_none(model, tmp_path):
    plain = ordspan.load(model)
    plain.calibration = None
    save(plain, tmp_path / "model")
    assert describe_model(tmp_path / "model")["calibration"] is None
    assert "Calibrated" not in ask("info", tmp_path / "model").output


@pytest.mark.parametrize("estimator", [*ESTIMATORS, OrdinalSVM()], ids=lambda e: type(e).__name__)
def test_every_estimator_saved_from_python_is_told(estimator, tmp_path):
    fitted = clone(estimator).fit(X, SPANS)
    save(fitted, tmp_path / "model")
    told = json.loads(ask("info", tmp_path / "model", "--json").stdout)
    assert told["estimator"] == type(estimator).__name__
    assert (told["columns"], told["training"], told["checkpoint"]) == (None, None, None)
    assert (told["thresholds"] is None) == (not hasattr(fitted, "thresholds_"))
    output = ask("info", tmp_path / "model").output
    if not hasattr(fitted, "coef_"):  # a kernel that is not linear has no weights
        assert told["weights"] is None
        return
    weights = {row["feature"]: row["weight"] for row in told["weights"]}
    for j in range(4):
        assert weights[f"column {j}"] == fitted.coef_[..., j].tolist()
    assert "per unit of the feature" in output
    if isinstance(fitted, OrdinalSVM):
        assert told["fitted"]["duality_gap"] == fitted.duality_gap_
        assert "duality gap" in output


def test_a_vector_per_class_has_a_column_per_class(tmp_path):
    fitted = MulticlassPA(classes=["aa", "bb", "cc", "dd"], random_state=0)
    save(fitted.fit(X, np.array(["aa", "bb", "cc", "dd"])[Y - 1]), tmp_path / "model")
    head = ask("info", tmp_path / "model").output.split("Largest weights")[1].split("\n")[2]
    assert head.split() == ["feature", "aa", "bb", "cc", "dd"]


def test_names_are_shown_as_they_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["[red]size", ":smile:", "a\\b", "plain"]
    save(OrdinalPA(random_state=0).fit(pandas.DataFrame(X, columns=names), Y), tmp_path / "model")
    output = ask("info", tmp_path / "model").output
    assert all(name in output for name in names)


class Kernel:
    """An estimator without weights of features."""

    classes_ = np.array([1, 2])
    thresholds_ = np.array([0.5])
    dual_coef_ = np.zeros(17)
    n_features_in_ = 3
    n_iter_ = 2


def test_an_estimator_without_weights_tells_its_support_vectors():
    told = describe_estimator(Kernel(), {"gamma_": 0.25})
    assert told["support_vectors"] == 17
    assert told["fitted"] == {"gamma": 0.25}
    assert told["updates"] is None


def test_a_checkpoint_says_how_far_it_came(tmp_path):
    path = write_table(ratings(), tmp_path / "a.csv")
    stop = Stop()

    def enough(learned, mae, share):
        stop.requested = learned >= 400

    job = TrainJob([str(path)], label="grade", classes=GRADES, drop=["id", "town"], passes=3)
    with pytest.raises(Stopped):
        train(job, tmp_path / "model", every=Every(rows=100), stop=stop, report=enough)
    told = describe_model(tmp_path / "model.checkpoint")
    assert told["kind"] == "checkpoint"
    assert told["checkpoint"]["rows"] == told["training"]["rows"] == 400
    assert (told["checkpoint"]["pass"], told["checkpoint"]["passes"]) == (2, 3)
    assert told["checkpoint"]["rows_of_pass"] == 100
    output = ask("info", tmp_path / "model.checkpoint").output
    assert "checkpoint of an unfinished training: 400 rows learned, in pass 2 of 3" in output
    assert ask("predict", path, "--model", tmp_path / "model.checkpoint").exit_code == 0


def test_svmlight_features_are_named_by_their_index(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 3:1\n2 2:4\n" * 20)
    assert ask("train", tmp_path / "a.svm", "--model", tmp_path / "model").exit_code == 0
    told = describe_model(tmp_path / "model")
    rows = {row["feature"]: row for row in told["weights"]}
    assert set(rows) == {"feature 1", "feature 2", "feature 3"}
    assert (rows["feature 2"]["mean"], rows["feature 2"]["spread"]) == (0.0, 4.0)


def test_a_mistake_is_told_in_one_line(model, tmp_path):
    cut = tmp_path / "cut"
    cut.write_bytes(model.read_bytes()[:-9])
    for path, message in (
        (tmp_path / "none", "no such model file"),
        (tmp_path, "is a folder"),
        (cut, "truncated"),
    ):
        answer = ask("info", path)
        assert answer.exit_code == 1
        assert message in answer.output
    assert ask("info", model, "--top", "-1").exit_code == 2
    with pytest.raises(ValueError, match="top must be"):
        describe_model(model, top=-1)
