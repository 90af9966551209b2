"""`ordspan train --dask`: the same model as from one machine, where the two can be compared."""

import numpy as np
import polars as pl
import pytest
from files_to_train import FORMATS, make_rows, write_rows
from sklearn.preprocessing import StandardScaler
from tables import ask

import ordspan
from ordspan.commands.train import TrainJob, train

distributed = pytest.importorskip("distributed")

from fuzz.dask_kills import quick_workers  # noqa: E402
from ordspan.commands import train_dask  # noqa: E402
from ordspan.commands.train_dask import train_on_dask  # noqa: E402

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
        paths.append(str(write_rows(part, ending, X[rows], GRADES[rows])))
    return paths


def label_of(ending):
    return {} if ending == "txt" else {"label": "grade"}


@pytest.mark.parametrize("ending", FORMATS)
def test_one_file_and_one_pass_is_plain_training(tmp_path, ending, address):
    job = TrainJob(parts_in(tmp_path, ending, 1), standardise=False, **label_of(ending))
    train(job, tmp_path / "plain")
    summary = train_on_dask(job, tmp_path / "dask", address)
    plain, mixed = (ordspan.load(tmp_path / name).estimator for name in ("plain", "dask"))
    np.testing.assert_array_equal(mixed.coef_, plain.coef_)
    np.testing.assert_array_equal(mixed.thresholds_, plain.thresholds_)
    assert summary["rows"] == 3000
    assert summary["classes"] == [1, 2, 3, 4]


def test_all_rows_decide_the_scale_and_the_order_of_files_the_mixture(tmp_path, address):
    job = TrainJob(parts_in(tmp_path), label="grade", passes=2)
    first = train_on_dask(job, tmp_path / "m", address)
    model = ordspan.load(tmp_path / "m")
    known = StandardScaler().fit(X)
    centre, factor = model.centre_and_factor()
    np.testing.assert_allclose(centre, known.mean_, rtol=1e-12)
    np.testing.assert_allclose(1 / factor, known.scale_, rtol=1e-12)
    again = train_on_dask(job, tmp_path / "again", address)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    assert len(first["mae"]) == 2
    assert first["mae"] == again["mae"]
    assert first["mae"][1] < 0.5


@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_looks_at_the_files_one_by_one_find_the_scale_of_all_rows(tmp_path, ending, address):
    paths = parts_in(tmp_path, ending, 7)
    job = TrainJob(paths, **label_of(ending))
    train(job, tmp_path / "plain")
    train_on_dask(job, tmp_path / "dask", address)
    plain, mixed = (ordspan.load(tmp_path / name).scale.state for name in ("plain", "dask"))
    np.testing.assert_allclose(mixed[:3], plain[:3], rtol=1e-12)
    assert (mixed[0] > 0).all()


def test_sorted_rows_are_shuffled_in_each_file(tmp_path, address):
    order = np.argsort(GRADES, kind="stable")
    path = write_rows(tmp_path, "csv", X[order], GRADES[order])
    summary = train_on_dask(TrainJob([str(path)], label="grade"), tmp_path / "m", address)
    assert summary["shuffled"]
    assert summary["mae"][0] < 0.5


def test_files_with_a_grade_each_are_refused(tmp_path, address):
    for grade in np.unique(GRADES):
        folder, rows = tmp_path / f"{grade}", grade == GRADES
        folder.mkdir()
        write_rows(folder, "csv", X[rows], GRADES[rows])
    words = ["train", *tmp_path.glob("*/*"), "--label", "grade", "--model", tmp_path / "m"]
    answer = ask(*words, "--dask", address)
    assert answer.exit_code == 1
    assert "the grades differ between files" in answer.output
    assert not (tmp_path / "m").exists()


def test_an_interrupted_run_goes_on_after_its_last_round(tmp_path, address, monkeypatch):
    job = TrainJob(parts_in(tmp_path), label="grade", passes=3, shuffle_buffer=1, seed=4)
    train_on_dask(job, tmp_path / "whole", address)
    seen = []

    def stop_in_the_second_round(learned, mae, share):
        seen.append(share)
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_on_dask(job, tmp_path / "m", address, report=stop_in_the_second_round)
    assert (tmp_path / "m.checkpoint").exists()
    assert not (tmp_path / "m").exists()
    seen.clear()
    summary = train_on_dask(
        job, tmp_path / "m", address, resume=True, report=lambda learned, mae, share: None
    )
    assert summary["resumed"]
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "m.checkpoint").exists()


def test_bad_rows_are_named_with_their_block_or_skipped(tmp_path, address):
    paths = parts_in(tmp_path)
    with open(paths[1], "a") as file:
        file.write("x,1,1,1\n")
    job = TrainJob(paths, label="grade", classes=[1, 2, 3, 4])
    with pytest.raises(ValueError, match=r"^block 1 \([^()]*\), line 1002: column 'x0' holds"):
        train_on_dask(job, tmp_path / "m", address)
    skipping = TrainJob(paths, label="grade", classes=[1, 2, 3, 4], on_bad_row="skip")
    summary = train_on_dask(skipping, tmp_path / "m", address)
    assert (summary["rows"], summary["skipped"]) == (3000, 1)


def test_python_takes_an_address_or_a_client_and_gives_the_model_of_the_command(tmp_path, address):
    words, paths = np.where(X[:, 0] > 0, "high", "low"), []
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 2)):
        values = pl.Series(X[rows, 1]).set(pl.Series(rows % 9 == 0), None)
        table = pl.DataFrame({"id": rows, "size": 1000 * values, "word": words[rows]})
        paths.append(tmp_path / f"{number}.parquet")
        table.with_columns(grade=pl.Series(GRADES[rows])).write_parquet(paths[-1])
    job = TrainJob([str(path) for path in paths], label="grade", passes=2)
    train_on_dask(job, tmp_path / "command", address)
    settings = {"label": "grade", "passes": 2}
    model = ordspan.train_files(paths, tmp_path / "a", dask=address, **settings)
    with distributed.Client(address, set_as_default=False) as client:
        ordspan.train_files(paths, tmp_path / "c", dask=client, **settings)
        assert client.status == "running"
    assert (tmp_path / "a").read_bytes() == (tmp_path / "command").read_bytes()
    assert (tmp_path / "c").read_bytes() == (tmp_path / "command").read_bytes()
    assert model.predict(table).shape == (1500,)  # the columns of the files, with words and gaps
    with pytest.raises(TypeError, match="dask is True; give an address"):
        ordspan.train_files(paths, tmp_path / "d", dask=True, **settings)


def test_what_cannot_be_shared_out_is_told(tmp_path, address, monkeypatch):
    with pytest.raises(ValueError, match="standard input cannot be split"):
        train_on_dask(TrainJob(["-"], label="g", classes=[1, 2]), tmp_path / "m", address)
    monkeypatch.setattr(train_dask, "TIMEOUT", 2.0)
    paths = parts_in(tmp_path)
    with pytest.raises(ValueError, match="no Dask scheduler answers at"):
        train_on_dask(TrainJob(paths, label="grade"), tmp_path / "m", "127.0.0.1:9")
    for choices in ({"learner": "svm"}, {"hold_out": 0.1}, {"start": str(tmp_path / "n")}):
        with pytest.raises(ValueError, match="Dask supports only the learner pa"):
            train_on_dask(TrainJob(paths, label="grade", **choices), tmp_path / "m", address)

    def refuse(**settings):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(train_dask, "LocalCluster", refuse)
    with pytest.raises(RuntimeError, match=r'failed to start.* below: if __name__ == "__main__":'):
        train_on_dask(TrainJob(paths, label="grade"), tmp_path / "m", "local")
    with pytest.raises(ValueError, match="so there is nothing to resume"):
        train_on_dask(TrainJob(paths, label="grade"), tmp_path / "m", address, resume=True)


def test_the_command_trains_on_the_processors_of_this_machine(tmp_path):
    words = ["train", *parts_in(tmp_path), "--label", "grade", "--model", tmp_path / "m"]
    with quick_workers():
        answer = ask(*words, "--dask", "local", "--passes", "2", "--json")
    assert answer.exit_code == 0, answer.output
    assert ordspan.load(tmp_path / "m").training["blocks"] == 3
