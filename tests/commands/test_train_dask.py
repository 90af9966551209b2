"""`ordspan train --dask`: the same model as from one machine, where the two can be compared."""

import numpy as np
import pandas as pd
import pytest
from files_to_train import make_rows, write_rows
from sklearn.datasets import dump_svmlight_file

import ordspan
from tables import check_resumes, reviews, said, summary

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
X, GRADES = make_rows(3000)


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def parts_in(folder, ending="csv", n_parts=3):
    """The rows cut into several files."""
    paths = []
    for number, rows in enumerate(np.array_split(np.arange(len(X)), n_parts)):
        part = folder / f"part-{number}"
        part.mkdir()
        paths.append(write_rows(part, ending, X[rows], GRADES[rows]))
    return paths


def words(paths, model, *more):
    label = [] if paths and paths[0].suffix == ".txt" else ["--label", "grade"]
    return ["train", *paths, *label, "--model", model, *more]


def test_sentences_are_the_same_words_on_every_worker(tmp_path, address):
    reviews().write_csv(tmp_path / "a.csv")
    for name, more in (("plain", ["--passes", 1]), ("dask", ["--dask", address])):
        said("train", tmp_path / "a.csv", "--label", "stars", *more, "--model", tmp_path / name)
    plain, mixed = (ordspan.load(tmp_path / name) for name in ("plain", "dask"))
    np.testing.assert_array_equal(mixed.estimator.coef_, plain.estimator.coef_)
    assert mixed.recipe == plain.recipe


@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_all_rows_decide_the_scale_and_a_second_run_gives_the_same_bytes(tmp_path, ending, address):
    paths = parts_in(tmp_path, ending, 7)
    said(*words(paths, tmp_path / "plain"))
    for name in ("m", "again"):
        found = summary(*words(paths, tmp_path / name, "--passes", 2, "--dask", address))
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    assert len(found["mae"]) == 2
    assert found["mae"][1] < 0.5
    scales = [
        {row["feature"]: (row["mean"], row["spread"]) for row in summary("info", path)["weights"]}
        for path in (tmp_path / "plain", tmp_path / "m")
    ]
    for feature, expected in scales[0].items():
        np.testing.assert_allclose(scales[1][feature], expected, rtol=1e-12)


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("ranges", [False, True])
def test_models_have_probabilities_and_ranges(tmp_path, address, passes, ranges):
    rng, paths = np.random.default_rng(0), []
    for number, rows in enumerate(np.split(np.arange(3000), [200, 900])):  # of several sizes
        low, high = np.clip(GRADES[rows] + rng.integers(-1, 2, (2, rows.size)) * ranges, 1, 4)
        table = pd.DataFrame(X[rows], columns=["a", "b", "c"])
        table = table.assign(low=np.minimum(low, GRADES[rows]), high=np.maximum(high, GRADES[rows]))
        paths.append(tmp_path / f"{number}.parquet")
        table.to_parquet(paths[-1])
    settings = {"lower": "low", "upper": "high", "passes": passes}
    mixed = ordspan.train_files(paths, tmp_path / "dask", dask=address, **settings)
    plain = ordspan.train_files(paths, tmp_path / "plain", **settings)
    rows, truth = make_rows(4000, seed=1)
    rows = pd.DataFrame(rows, columns=["a", "b", "c"])
    hits = [model.predict_proba(rows)[np.arange(4000), truth - 1] for model in (mixed, plain)]
    assert np.log(hits[0]).mean() > np.log(hits[1]).mean() - 0.02
    low, high = np.transpose(mixed.predict_interval(rows, coverage=0.9))
    covered = ((low <= truth) & (truth <= high)).mean()
    assert 0.87 < covered < (1.0 if ranges else 0.93)
    kept = [note for note in mixed.training["notes"] if "kept to calibrate" in note]
    assert kept == (
        ["300 rows are not learned in any pass, but kept to calibrate probabilities"] * (passes > 1)
    )
    assert mixed.training["rows"] == (3000 if passes == 1 else passes * 2700)


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_files_agree_on_their_columns(tmp_path, address, zero_based):
    rows = np.abs(X)
    rows[:1000, 2] = 0.0  # the first file does not show the last column
    rows[1000:, 0] = 0.0  # the others do not show the first one
    for number, part in enumerate(np.split(np.arange(3000), 3)):
        path = str(tmp_path / f"{number}.svm")
        dump_svmlight_file(rows[part], GRADES[part], path, zero_based=zero_based)
    found = summary("train", tmp_path, "--model", tmp_path / "m", "--dask", address)
    plain = summary("train", tmp_path, "--model", tmp_path / "n")
    assert (found["features"], found["classes"]) == (plain["features"], plain["classes"])


def test_files_and_rows_that_cannot_be_read_are_named(tmp_path, address):
    paths = parts_in(tmp_path, "parquet")
    table = pd.read_parquet(paths[1])
    table.drop(columns="grade").to_parquet(paths[1])
    asked = words(paths, tmp_path / "m", "--dask", address)
    assert f"{paths[1]}: no column 'grade'; the columns are x0" in said(*asked, code=1)
    paths[1].write_bytes(b"PAR1 and nothing else")
    assert f"{paths[1]}: " in said(*asked, code=1)
    table.assign(grade=table["grade"].where(table.index > 9)).to_parquet(paths[1])
    assert "10 rows without a label were left out" in summary(*asked)["notes"]
    table.assign(x0=["odd", *table["x0"][1:]]).to_csv(tmp_path / "odd.csv", index=False)
    asked = words([tmp_path / "odd.csv", paths[0]], tmp_path / "n", "--dask", address)
    asked += ["--grades", "1..4"]
    assert "odd.csv, row 1: column 'x0' holds" in said(*asked, code=1)
    found = summary(*asked, "--on-bad-row", "skip")
    assert (found["rows"], found["skipped"]) == (1999, 1)
    for passes, enough in ((1, 2), (2, 10)):
        for rows, code in ((enough - 1, 1), (enough, 0)):
            table.assign(grade=[1, 4] * 500)[:rows].to_csv(tmp_path / "few.csv", index=False)
            asked = words([tmp_path / "few.csv"], tmp_path / "few", "--dask", address)
            asked += ["--grades", "1..4", "--passes", passes, "--overwrite"]
            assert ("rows to keep some to calibrate" in said(*asked, code=code)) == (code == 1)


def test_sorted_rows_are_shuffled_and_files_with_a_grade_each_refused(tmp_path, address):
    order = np.argsort(GRADES, kind="stable")
    path = write_rows(tmp_path, "csv", X[order], GRADES[order])
    found = summary(*words([path], tmp_path / "m", "--dask", address))
    assert found["shuffled"]
    assert found["mae"][0] < 0.5
    for grade in np.unique(GRADES):
        (tmp_path / f"{grade}").mkdir()
        write_rows(tmp_path / f"{grade}", "csv", X[grade == GRADES], GRADES[grade == GRADES])
    asked = words([*tmp_path.glob("*/*.csv")], tmp_path / "n", "--dask", address)
    assert "the grades differ between files" in said(*asked, code=1)
    assert not (tmp_path / "n").exists()


def test_an_interrupted_run_goes_on_after_its_last_round(tmp_path, address):
    words = ["--label", "grade", "--passes", 3, "--shuffle", "--dask", address]
    check_resumes(tmp_path, "train", *parts_in(tmp_path), *words, checkpoints=2)


def test_python_takes_an_address_or_a_client_and_gives_the_model_of_the_command(tmp_path, address):
    table = pd.DataFrame(X, columns=["a", "size", "c"]).assign(grade=GRADES)
    table["word"] = np.where(X[:, 0] > 0, "high", "low")
    table.loc[::9, "size"] = None
    paths = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for path, rows in zip(paths, (table[:1500], table[1500:]), strict=True):
        rows.to_parquet(path)
    said(*words(paths, tmp_path / "command", "--passes", 2, "--dask", address))
    settings = {"label": "grade", "passes": 2}
    model = ordspan.train_files(paths, tmp_path / "a", dask=address, **settings)
    with distributed.Client(address, set_as_default=False) as client:
        ordspan.train_files(paths, tmp_path / "c", dask=client, **settings)
        assert client.status == "running"
    for name in "ac":
        assert (tmp_path / name).read_bytes() == (tmp_path / "command").read_bytes()
    assert model.predict(table).shape == (3000,)  # the columns of the files, with words and gaps
    with pytest.raises(ValueError, match="no Dask scheduler answers at True"):
        ordspan.train_files(paths, tmp_path / "d", dask=True, **settings)


@pytest.mark.slow
def test_the_command_trains_on_the_processors_of_this_machine(tmp_path):
    said(*words(parts_in(tmp_path), tmp_path / "m", "--dask", "local", "--passes", 2))
    assert ordspan.load(tmp_path / "m").training["blocks"] == 3
