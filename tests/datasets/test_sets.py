import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ordspan import datasets
from ordspan.datasets import CorruptFile
from ordspan.datasets.letor import MSLR_SAMPLE
from ordspan.datasets.sets import (
    ABALONE_EDGES,
    CALIFORNIA_EDGES,
    PARKINSON_EDGES,
    bin_ranks,
    standardise,
)

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("ORDSPAN_DATA") or ROOT.parent / "shared" / "data")
needs_files = pytest.mark.skipif(
    not (DATA / f"{MSLR_SAMPLE[0]}.gz").is_file(),
    reason="no data folder: set ORDSPAN_DATA to run this",
)


@pytest.fixture(autouse=True)
def _on_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    monkeypatch.setenv("ORDSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ORDSPAN_DATA", raising=False)


# ---- bins and scales -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "values", "ranks"),
    [
        (
            CALIFORNIA_EDGES,
            [1, 14999, 100000, 100001, 200000, 200001, 300000, 300001, 400000, 400001, 500001],
            [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
        ),
        (ABALONE_EDGES, [1, 7, 8, 9, 10, 12, 13, 29], [1, 1, 2, 2, 3, 3, 4, 4]),
        (
            PARKINSON_EDGES,
            [7, 17, 17.999, 18, 27.5, 28, 37.999, 38, 54.992],
            [1, 1, 1, 2, 2, 3, 3, 4, 4],
        ),
    ],
)
def test_classes_begin_and_end_where_the_paper_says(edges, values, ranks):
    np.testing.assert_array_equal(bin_ranks(values, edges), ranks)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
def test_columns_get_mean_0_and_variance_1_and_a_constant_one_zeros(value):
    X = np.random.default_rng(0).normal(5e6, 3, size=(1000, 4))
    X[:, 0] = value
    standardise(X)
    assert (X[:, 0] == 0).all()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(X[:, 1:].std(axis=0), 1)


# ---- the sets as they are --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("california", (20640, 8), [3658, 8273, 4873, 2092, 1744]),
        ("abalone", (4177, 10), [839, 1257, 1388, 693]),
        ("parkinson", (5875, 19), [906, 2137, 1532, 1300]),
        pytest.param(
            "mslr", (10000, 136), [5639, 2900, 1244, 153, 64], marks=needs_files, id="mslr"
        ),
    ],
)
def test_a_set_has_its_rows_grades_and_scale(monkeypatch, name, shape, sizes):
    if name == "mslr":  # the others ship with the package
        monkeypatch.setenv("ORDSPAN_DATA", str(DATA))
    dataset = datasets.load_dataset(name)
    assert (dataset.name, dataset.X.shape, dataset.n_classes) == (name, shape, len(sizes))
    assert (dataset.X.dtype, dataset.ranks.dtype) == (np.float64, np.int64)
    assert dataset.X.flags.c_contiguous
    assert np.bincount(dataset.ranks)[1:].tolist() == sizes
    assert len(dataset.feature_names) == shape[1]
    assert str(DATA) not in dataset.source  # no path of this machine in a report
    np.testing.assert_allclose(dataset.X.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(dataset.X.std(axis=0), 1)


def test_the_sex_of_an_abalone_is_three_columns_or_one():
    three, one = datasets.abalone(), datasets.abalone(sex="one-column")
    assert three.feature_names[:3] == ("sex=M", "sex=F", "sex=I")
    assert [np.count_nonzero(column > 0) for column in three.X.T[:3]] == [1528, 1307, 1342]
    assert one.X.shape == (4177, 8)
    assert np.unique(one.X[:, 0]).size == 3
    np.testing.assert_array_equal(one.X[:, 1:], three.X[:, 3:])
    male, female, infant = (one.X[three.X[:, column] > 0, 0][0] for column in range(3))
    assert female < infant < male


def test_parkinson_never_shows_the_target_and_the_rest_by_choice():
    plain = set(datasets.parkinson().feature_names)
    for choices, added in (
        ({"motor_updrs": True}, {"motor_UPDRS"}),
        ({"motor_updrs": True, "subject": True}, {"motor_UPDRS", "subject#"}),
    ):
        dataset = datasets.parkinson(**choices)
        assert dataset.X.shape == (5875, 19 + len(added))
        assert set(dataset.feature_names) - plain == added
    assert "total_UPDRS" not in dataset.feature_names


# ---- names and choices -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("era", {}, "data set 'era'; choose one of california, abalone, parkinson, synthetic, m"),
        ("abalone", {"sex": "two"}, "sex 'two'; choose one of one-hot, one-column"),
    ],
)
def test_an_unknown_name_or_choice_lists_the_known_ones(name, choices, message):
    with pytest.raises(ValueError, match=f"unknown {message}"):
        datasets.load_dataset(name, **choices)


def test_heavy_parts_stay_out_until_they_are_needed():
    heavy = ["pandas", "pyarrow", "pooch", "requests", "sklearn.datasets", "urllib.request"]
    code = f"import sys, ordspan.datasets; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- MSLR ------------------------------------------------------------------------------------


def line(grade=0, query=1, **cells):
    values = {str(column): str(column * query) for column in range(1, 137)}
    values |= {name.lstrip("c"): value for name, value in cells.items()}
    pairs = " ".join(f"{name}:{value}" for name, value in values.items() if value is not None)
    return f"{grade} qid:{query} {pairs} \r\n"


def write_fold(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath("train.txt").write_bytes(rows.encode())


@pytest.mark.parametrize("inside", [".", "Fold1", "MSLR-WEB10K/Fold1"])
def test_a_full_fold_is_found_in_three_places(tmp_path, inside):
    rows = "".join(line(grade, grade + 1) for grade in range(5))
    write_fold(tmp_path / inside, f"# a comment\n\r\n{rows}")
    dataset = datasets.mslr(data_dir=tmp_path)
    assert dataset.source == "full fold: train.txt"
    assert dataset.ranks.tolist() == [1, 2, 3, 4, 5]
    assert dataset.X.shape == (5, 136)
    np.testing.assert_allclose(dataset.X[:, 0], np.arange(-2, 3) / np.sqrt(2))


@needs_files
def test_a_full_fold_wins_over_the_sample_and_reads_alike(tmp_path):
    shutil.copytree(DATA / "mslr_web10k_sample", tmp_path / "mslr_web10k_sample")
    sample = datasets.mslr(data_dir=tmp_path)
    texts = [gzip.decompress((DATA / f"{name}.gz").read_bytes()).decode() for name in MSLR_SAMPLE]
    write_fold(tmp_path / "Fold1", "".join(texts))
    fold = datasets.mslr(data_dir=tmp_path)
    assert fold.source.startswith("full fold")
    np.testing.assert_array_equal(fold.X, sample.X)
    np.testing.assert_array_equal(fold.ranks, sample.ranks)


NEEDS = "needs a relevance 0..4 and 136 finite numbers"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line(7), NEEDS),
        (line(1.5), NEEDS),
        (line("x"), "the grade 'x' is not a number"),
        (line(c3="abc"), "'3:abc' is not of the form index:value"),
        (line(c3="nan"), NEEDS),
        (line(c136="inf"), NEEDS),
        (line(c5=None), NEEDS),
        (line(c137="1"), "index 137, but there are 136 features"),
    ],
)
def test_a_bad_row_is_named(tmp_path, bad, reason):
    write_fold(tmp_path, line() + line() + line() + bad + line())
    with pytest.raises(CorruptFile) as refusal:
        datasets.mslr(data_dir=tmp_path)
    assert str(refusal.value) == f"{tmp_path / 'train.txt'}, row 4: {reason}"


def test_an_empty_fold_is_refused(tmp_path):
    write_fold(tmp_path, "")
    with pytest.raises(CorruptFile, match=r"train\.txt: the file is empty"):
        datasets.mslr(data_dir=tmp_path)
