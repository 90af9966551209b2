"""What training finds in files, and its choices: order, learner, rows to hold out, --from."""

import json

import numpy as np
import pandas as pd
import pytest
from files_to_train import FORMATS, make_rows, write_rows

import ordspan
from commands.tables import ask
from ordspan import KernelOrdinalPA, OrdinalPA, OrdinalSVM
from ordspan.commands import train_rows, train_run
from ordspan.commands.stopping import Stop, Stopped
from ordspan.commands.train import Every, TrainJob, train
from ordspan.files import svmlight, tables
from ordspan.files.batch import FileError

X, GRADES = make_rows(4000)
NAMES = ["x0", "x1", "x2"]
CLASSES = [1, 2, 3, 4]
BY_GRADE = np.argsort(GRADES, kind="stable")


def job(path, **choices):
    label = {} if path.name.endswith(".txt") else {"label": "grade"}
    return TrainJob([str(path)], **label | choices)


def standardised(rows):
    return (rows - X.mean(axis=0)) / X.std(axis=0)


@pytest.fixture
def small_parts(monkeypatch):
    for module in (svmlight, tables):
        monkeypatch.setattr(module, "PART_BYTES", 1_000)
    monkeypatch.setattr(train_run, "BUFFER_BYTES", 64 * 700)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_sorted_by_grade_is_learned_in_random_order(tmp_path, ending, small_parts):
    path = write_rows(tmp_path, ending, X[BY_GRADE], GRADES[BY_GRADE])
    summary = train(job(path), tmp_path / "m")
    assert summary["shuffled"]
    assert "the rows are sorted by labels: they are learned in random order" in summary["notes"]
    windows_only = any("are too small to mix them" in note for note in summary["notes"])
    # one piece, or so many that four are in a window
    assert windows_only == (ending in ("csv.gz", "parquet"))
    if not windows_only:
        mixed = write_rows(tmp_path, ending, X, GRADES)
        in_order = train(job(mixed), tmp_path / "mixed")
        assert not in_order["shuffled"]
        assert summary["mae"][0] < 1.5 * in_order["mae"][0]
    in_order = train(job(path, shuffle_buffer=0), tmp_path / "in-order")
    assert not in_order["shuffled"]


def test_the_order_is_kept_if_told_and_that_is_noted(tmp_path):
    path = write_rows(tmp_path, "csv", X[BY_GRADE], GRADES[BY_GRADE])
    summary = train(job(path, shuffle_buffer=0, standardise=False), tmp_path / "m")
    assert (
        "the rows are sorted by labels, and learned in that order, as requested" in summary["notes"]
    )
    expected = OrdinalPA(classes=CLASSES).partial_fit(X[BY_GRADE], GRADES[BY_GRADE])
    trained = ordspan.load(tmp_path / "m").estimator
    np.testing.assert_array_equal(trained.coef_, expected.coef_)


def test_numbers_are_standardised_by_the_whole_file(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    train(job(path), tmp_path / "m")
    model = ordspan.load(tmp_path / "m")
    centre, factor = model.centre_and_factor()
    np.testing.assert_allclose(centre, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(1 / factor, X.std(axis=0), rtol=1e-12)
    expected = OrdinalPA(classes=CLASSES).partial_fit(standardised(X), GRADES)
    np.testing.assert_allclose(model.estimator.coef_, expected.coef_, rtol=1e-9)


def test_nothing_is_replaced_or_resumed_by_accident(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    with pytest.raises(FileError, match="so there is nothing to resume; leave out resume to"):
        train(job(path), tmp_path / "m", resume=True)
    train(job(path), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    with pytest.raises(FileError, match=r"m already exists: overwrite=True replaces it, start="):
        train(job(path, passes=2), tmp_path / "m")
    with pytest.raises(FileError, match=r"m is finished\. To continue training it, give start="):
        train(job(path, passes=2), tmp_path / "m", resume=True)
    assert (tmp_path / "m").read_bytes() == before
    train(job(path, passes=2), tmp_path / "m", overwrite=True)
    assert (tmp_path / "m").read_bytes() != before
    stop = Stop()

    def report(learned, mae, share):
        stop.requested = True

    with pytest.raises(Stopped):
        train(job(path, passes=3), tmp_path / "n", stop=stop, report=report)
    with pytest.raises(FileError, match=r"n\.checkpoint is left from an interrupted training"):
        train(job(path, passes=3), tmp_path / "n")


@pytest.mark.parametrize("ending", FORMATS)
def test_going_on_from_a_model_is_partial_fit_of_it(tmp_path, ending):
    first, more = tmp_path / "first", tmp_path / "more"
    first.mkdir()
    more.mkdir()
    path = write_rows(first, ending, X[:2500], GRADES[:2500])
    rest = write_rows(more, ending, X[2500:], GRADES[2500:])
    train(job(path, parameters={"C": 0.5}), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    summary = train(job(rest, start=str(tmp_path / "m")), tmp_path / "n")
    assert summary["rows"] == 1500
    assert (tmp_path / "m").read_bytes() == before
    expected = ordspan.load(tmp_path / "m")
    table = pd.DataFrame(X[2500:], columns=NAMES).assign(grade=GRADES[2500:])
    if ending == "txt":
        from scipy.sparse import csr_array

        expected.partial_fit(csr_array(X[2500:]), GRADES[2500:])
    else:
        expected.partial_fit(table)
    gone_on = ordspan.load(tmp_path / "n")
    np.testing.assert_array_equal(gone_on.estimator.coef_, expected.estimator.coef_)
    assert gone_on.parameters["C"] == 0.5
    assert gone_on.training["rows"] == expected.training["rows"] == 4000


def test_going_on_refuses_what_the_model_decides_or_does_not_know(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    train(job(path), tmp_path / "m")
    table = pd.read_csv(path)
    table.assign(x3=1.5).to_csv(tmp_path / "wide.csv", index=False)
    table.assign(grade=5).to_csv(tmp_path / "five.csv", index=False)
    table.drop(columns="x1").to_csv(tmp_path / "narrow.csv", index=False)
    start = ["--from", tmp_path / "m", "--model", tmp_path / "n"]
    for name, words, message in (
        ("rows.csv", ["--C", "2"], "--C cannot be given with --from, because the model decides it"),
        ("rows.csv", ["--grades", "1..4"], "--grades cannot be given with --from"),
        ("wide.csv", [], "does not know the column 'x3'; leave it out with --drop x3, or"),
        ("narrow.csv", [], "no column 'x1'"),
        ("five.csv", [], "grade '5' is not among the model's"),
    ):
        answer = ask("train", tmp_path / name, *start, *words)
        assert answer.exit_code == 1
        assert message in " ".join(answer.output.split())
    assert not (tmp_path / "n").exists()
    assert ask("train", tmp_path / "wide.csv", *start, "--drop", "x3").exit_code == 0


def test_an_svm_cannot_go_on(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    train(job(path, learner="svm"), tmp_path / "m")
    with pytest.raises(FileError, match="m holds an OrdinalSVM, which is fitted in one step"):
        train(job(path, start=str(tmp_path / "m")), tmp_path / "n")
    with pytest.raises(ValueError, match="fitted in one step and cannot be continued"):
        ordspan.load(tmp_path / "m").partial_fit(pd.DataFrame(X, columns=NAMES), GRADES)


def test_only_columns_that_are_needed_must_be_in_every_file(tmp_path):
    table = pd.DataFrame(X, columns=NAMES).assign(grade=GRADES)
    table.to_csv(tmp_path / "a.csv", index=False)
    table.drop(columns="x1").to_csv(tmp_path / "b.csv", index=False)
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    summary = train(TrainJob(files, label="grade"), tmp_path / "both")
    assert summary["left_out"] == {"x1": "not every file has it"}
    with pytest.raises(FileError, match=r"b\.csv: no column 'x1'; the columns are x0, x2, grade"):
        train(TrainJob(files, label="grade", features=["x1"]), tmp_path / "m")
    for number, choices in enumerate(({"drop": ["x1"]}, {"features": ["x0", "x2"]})):
        summary = train(TrainJob(files, label="grade", **choices), tmp_path / f"m{number}")
        assert summary["rows"] == 8000
    train(TrainJob(files[:1], label="grade"), tmp_path / "m")
    with pytest.raises(FileError, match=r"b\.csv: no column 'x1'"):
        train(TrainJob(files, label="grade", start=str(tmp_path / "m")), tmp_path / "n")


@pytest.mark.parametrize("buffer", [0, 700])
def test_rows_that_are_held_out_are_not_learned(tmp_path, monkeypatch, buffer):
    monkeypatch.setattr(tables, "PART_BYTES", 8_000)
    path = write_rows(tmp_path, "csv", X, GRADES)
    work = job(path, hold_out=0.25, passes=2, seed=5, shuffle_buffer=buffer)
    summary = train(work, tmp_path / "m", every=Every(rows=250))
    held_out = summary["held_out"]
    assert summary["rows"] + 2 * held_out["rows"] == 2 * 4000
    assert held_out["rows"] == pytest.approx(1000, abs=100)
    assert held_out["mae"] < held_out["best_constant"]["mae"]["value"]
    again = train(work, tmp_path / "again")
    assert again["held_out"] == held_out
    other = job(path, hold_out=0.25, passes=2, seed=6, shuffle_buffer=buffer)
    assert train(other, tmp_path / "other")["held_out"] != held_out
    stop = Stop()

    def report(learned, mae, share):
        stop.requested = learned >= 3500

    with pytest.raises(Stopped):
        train(work, tmp_path / "n", every=Every(rows=250), stop=stop, report=report)
    train(work, tmp_path / "n", every=Every(rows=250), resume=True)
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


def test_the_held_out_error_is_that_of_the_rows_not_learned(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    summary = train(job(path, hold_out=0.25, standardise=False), tmp_path / "m")
    out = train_rows.drawn(np.arange(4000), 0, 0) < 0.25
    expected = OrdinalPA(classes=CLASSES).partial_fit(X[~out], GRADES[~out])
    trained = ordspan.load(tmp_path / "m").estimator
    np.testing.assert_array_equal(trained.coef_, expected.coef_)
    error = np.abs(expected.predict(X[out]) - GRADES[out]).mean()
    assert summary["held_out"]["mae"] == pytest.approx(error, rel=1e-12)


def test_a_kernel_is_trained_from_files_and_resumed(tmp_path):
    path = write_rows(tmp_path, "csv", X[:1000], GRADES[:1000])
    parameters = {"gamma": 0.3, "budget": 60, "C": 0.5}
    work = job(path, learner="kernel", parameters=parameters, standardise=False)
    summary = train(work, tmp_path / "m", every=Every(rows=100))
    assert summary["estimator"] == "KernelOrdinalPA"
    expected = KernelOrdinalPA(**parameters, budget_strategy="nearest", classes=CLASSES)
    expected.partial_fit(X[:1000], GRADES[:1000])
    trained = ordspan.load(tmp_path / "m").estimator
    np.testing.assert_array_equal(trained.latent(X), expected.latent(X))
    stop = Stop()

    def report(learned, mae, share):
        stop.requested = learned >= 500

    with pytest.raises(Stopped):
        train(work, tmp_path / "n", every=Every(rows=100), stop=stop, report=report)
    train(work, tmp_path / "n", every=Every(rows=100), resume=True)
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


def test_an_svm_is_fitted_to_all_rows(tmp_path):
    rows = standardised(X).round(3)
    path = write_rows(tmp_path, "csv", rows, GRADES)
    words = ["--label", "grade", "--learner", "svm", "--C", "0.5", "--no-standardise"]
    answer = ask("train", path, *words, "--model", tmp_path / "m", "--json")
    assert answer.exit_code == 0, answer.output
    summary = json.loads(answer.stdout)
    expected = OrdinalSVM(C=0.5, random_state=0).fit(rows, GRADES)
    trained = ordspan.load(tmp_path / "m").estimator
    np.testing.assert_array_equal(trained.coef_, expected.coef_)
    error = np.abs(expected.predict(rows) - GRADES).mean()
    assert summary["fitted_mae"] == pytest.approx(error, rel=1e-12)
    answer = ask("train", path, *words, "--passes", "2", "--model", tmp_path / "n")
    assert answer.exit_code == 1
    assert "--passes cannot be given with --learner svm" in answer.output


def test_a_parameter_of_another_learner_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"the learner pa has no parameter budget; it has variant"):
        TrainJob(["a.csv"], label="grade", parameters={"budget": 5})
    with pytest.raises(ValueError, match=r"unknown learner 'tree'; choose from pa, kernel, svm"):
        TrainJob(["a.csv"], label="grade", learner="tree")


def test_ids_and_empty_columns_are_left_out_and_that_is_told(tmp_path):
    path = tmp_path / "rows.csv"
    table = pd.DataFrame(X, columns=NAMES).assign(
        grade=GRADES, number=range(1, 4001), key=[f"k{i}" for i in range(4000)], none=""
    )
    table.to_csv(path, index=False)
    summary = train(job(path), tmp_path / "m")
    assert set(summary["left_out"]) == {"number", "key", "none"}
    assert any("left out 'key'" in note for note in summary["notes"])
    model = ordspan.load(tmp_path / "m")
    assert list(model.recipe.columns) == NAMES
    table.drop(columns=["number", "key", "none"]).to_csv(tmp_path / "plain.csv", index=False)
    train(job(tmp_path / "plain.csv"), tmp_path / "plain")
    np.testing.assert_array_equal(
        model.estimator.coef_, ordspan.load(tmp_path / "plain").estimator.coef_
    )
    chosen = train(job(path, features=["x0", "number"]), tmp_path / "chosen")
    assert set(chosen["left_out"].values()) == {"as requested"}
    assert set(chosen["left_out"].values()) == {"as requested"}


def test_a_part_without_rows_changes_nothing(tmp_path):
    """Other tools write such parts, and a look must not stumble over them."""
    table = pd.DataFrame(X, columns=NAMES).assign(grade=GRADES)
    paths = [tmp_path / f"{part}.csv" for part in "abc"]
    for path, rows in zip(paths, (table[:0], table, table[:0]), strict=True):
        rows.to_csv(path, index=False)
    train(TrainJob([str(path) for path in paths], label="grade"), tmp_path / "m")
    train(job(paths[1]), tmp_path / "n")
    ours, theirs = (ordspan.load(tmp_path / name).estimator for name in "mn")
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


def test_small_floats_with_a_value_that_is_too_large_are_named(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pd.DataFrame(X.astype(np.float32), columns=NAMES).assign(grade=GRADES)
    table.loc[7, "x1"] = np.inf
    table.to_parquet(path, index=False)
    with pytest.raises(ValueError, match=r"row 8: column 'x1' holds inf, which is too large"):
        train(job(path), tmp_path / "m")
    assert train(job(path, on_bad_row="skip"), tmp_path / "m")["skipped"] == 1
