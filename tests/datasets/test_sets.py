import numpy as np
import pytest

from ordspan import datasets


@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("california", (20640, 8), [3658, 8273, 4873, 2092, 1744]),
        ("abalone", (4177, 10), [839, 1257, 1388, 693]),
        ("parkinson", (5875, 19), [906, 2137, 1532, 1300]),
        ("mslr", (10000, 136), [5639, 2900, 1244, 153, 64]),
    ],
)
def test_a_set_has_its_rows_grades_and_scale(request, name, shape, sizes):
    folder = request.getfixturevalue("data_dir") if name == "mslr" else None  # the others ship
    dataset = datasets.load_dataset(name, folder)
    assert (dataset.name, dataset.X.shape, dataset.n_classes) == (name, shape, len(sizes))
    assert (dataset.X.dtype, dataset.ranks.dtype) == (np.float64, np.int64)
    assert dataset.X.flags.c_contiguous
    assert np.bincount(dataset.ranks)[1:].tolist() == sizes
    assert len(dataset.feature_names) == shape[1]
    assert str(folder) not in dataset.source  # no path of this machine in a report
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
