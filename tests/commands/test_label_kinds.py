"""Labels as people have them in files: brackets of amounts, judges, measurements, no answer."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import ordspan
from tables import check_resumes, said, summary

FIVE = np.array([0, 25e3, 50e3, 100e3, np.inf])
THREE = np.array([-np.inf, 40e3, 75e3, np.inf])
BANDS = ["under 25k", "25k to 40k", "40k to 50k", "50k to 75k", "75k to 100k", "100k or more"]
TWO = ("--lower", "low", "--upper", "high")
RNG = np.random.default_rng(0)
INCOME = RNG.gamma(3, 20_000, 400)
SIZE = (INCOME / 30_000 - 2 + RNG.normal(0, 0.2, 400)).round(3)
SCALES = [FIVE if first else THREE for first in RNG.random(400) < 0.5]
ENDS = [
    scale[np.searchsorted(scale, x, "right") + np.array([-1, 0])]
    for x, scale in zip(INCOME, SCALES, strict=True)
]


def spelled(low, high):
    """A bracket as its survey writes it: one with ends that are included, one in thousands."""
    if high == np.inf:
        return f"${low:,.0f}+" if low in FIVE else f"${low / 1000:.0f}k or more"
    if low in FIVE:
        return f"${low:,.0f} – ${high - 1:,.0f}"
    return f"{low / 1000:.0f}-{high / 1000:.0f}k" if low > 0 else f"Less than ${high / 1000:.0f}k"


def write(path, **columns):
    pl.DataFrame({"size": SIZE} | columns, strict=False).write_csv(path)
    return path


@pytest.fixture
def written(tmp_path):
    return write(tmp_path / "written.csv", income=[spelled(*ends) for ends in ENDS])


@pytest.fixture
def two_columns(tmp_path):
    cells = [[None if np.isinf(end) else int(end) for end in ends] for ends in ENDS]
    low, high = zip(*cells, strict=True)
    return write(tmp_path / "two.csv", low=low, high=high)


def trained(tmp_path, *words):
    """The model and the notes of a training."""
    notes = summary("train", *words, "--model", tmp_path / "m", "--overwrite")["notes"]
    return ordspan.load(tmp_path / "m"), notes


def refused(tmp_path, *words):
    """What a training says that writes no model."""
    printed = said("train", *words, "--model", tmp_path / "m", code=1)
    assert not (tmp_path / "m").exists()
    return " ".join(printed.split())


def test_a_total_without_a_label_is_left_out_of_everything_that_is_learned(tmp_path):
    path = write(tmp_path / "a.csv", town=["Ulm", "Bonn"] * 200, grade=RNG.integers(1, 4, 400))
    words = ["--label", "grade", "--model"]
    clean, _ = trained(tmp_path, path, "--label", "grade")
    path.write_text(path.read_text() + "1500000,,\n")
    model, notes = trained(tmp_path, path, "--label", "grade")
    assert notes == ["text, one feature per value: town (2)", "1 row without a label was left out"]
    assert model.training["unlabelled_rows"] == 1
    assert model.learner.state.tolist() == clean.learner.state.tolist()
    assert model.encoder.state.tolist() == clean.encoder.state.tolist()
    path.write_text("size,grade\n1,\n")
    path = path.rename(tmp_path / "unlabelled.csv")
    assert "no row has a label in grade" in said("train", path, *words, tmp_path / "n", code=1)


def test_brackets_in_two_columns_and_as_text_are_the_same_model(written, two_columns, tmp_path):
    model, notes = trained(tmp_path, written, "--label", "income", "--brackets")
    assert model.classes_.tolist() == BANDS
    edges = [note for note in notes if note.startswith("edges, with the labels at each: 25k (")]
    other, notes = trained(tmp_path, two_columns, *TWO, "--brackets")
    assert other.classes_.tolist() == BANDS
    assert other.thresholds.tolist() == model.thresholds.tolist()
    assert [note for note in notes if "edges" in note] == edges != []
    y, classes = ordspan.brackets([spelled(*ends) for ends in ENDS])
    assert classes.tolist() == BANDS
    assert model.score(pl.DataFrame({"size": SIZE}), y) == model.score(pl.read_csv(written))


def test_answers_come_back_in_the_same_units(written, two_columns, tmp_path):
    model, _ = trained(tmp_path, written, "--label", "income", "--brackets")
    out = tmp_path / "out.csv"
    said("predict", written, "--model", tmp_path / "m", "--range", "0.9", "--proba", "--out", out)
    table = pl.read_csv(out)
    assert set(table["prediction"]) <= set(BANDS)
    assert [f"P({band})" for band in BANDS] == [c for c in table.columns if c.startswith("P(")]
    ranges = model.predict_interval(pl.DataFrame({"size": SIZE}))
    edges = [None, "25k", "40k", "50k", "75k", "100k", None]
    for low, high, (first, last) in zip(table["lower"], table["upper"], ranges, strict=True):
        assert low == edges[BANDS.index(first)]
        assert high == edges[BANDS.index(last) + 1]
    # what predict writes can be read as labels again
    graded = tmp_path / "graded.csv"
    table.with_columns(pl.Series("size", SIZE)).write_csv(graded)
    found = ordspan.evaluate_files(graded, tmp_path / "m", lower="lower", upper="upper")
    assert (found["rows"], found["mae"]) == (400, 0.0)
    assert "75k to 100k" in said("info", tmp_path / "m")
    one = ordspan.evaluate_files(written, tmp_path / "m")
    two = ordspan.evaluate_files(two_columns, tmp_path / "m", lower="low", upper="high")
    assert one["mae"] == two["mae"] < 0.3


def test_edges_choose_the_bands_and_brackets_widen_to_them(written, tmp_path):
    how = ("--label", "income", "--brackets", "--edges", "30k,$60k")
    model, notes = trained(tmp_path, written, *how)
    assert model.classes_.tolist() == ["under 30k", "30k to 60k", "60k or more"]
    assert any("widened" in note for note in notes)
    in_python = ordspan.train_files(
        written, tmp_path / "n", label="income", brackets=True, edges=[30_000, 60_000]
    )
    assert in_python.thresholds.tolist() == model.thresholds.tolist()


def test_a_pipe_needs_edges(written, tmp_path):
    words = ["train", "-", "--format", "csv", "--label", "income", "--brackets"]
    words += ["--model", tmp_path / "m"]
    rows = written.read_bytes()
    assert "--edges" in said(*words, code=1, input=rows)
    found = summary(*words, "--edges", "25k,50k", input=rows)
    assert found["classes"] == ["under 25k", "25k to 50k", "50k or more"]


AGES, PAY = ["18-29", "30-44", "45-60", "> 60"], ["under 70k", "70-90k", "90-140k", "under 90k"]
AGE_BANDS = ["under 30", "30 to 45", "45 to 60", "60 or more"]
VOTES = ["", *map(str, RNG.integers(-2, 4, (399, 5)).tolist())]
LISTS = "ratings of several people, give ratings=['label'] (--ratings label)"


def coded(code):
    """Grades 0 to 3, after 40 rows with this code."""
    return [code] * 40 + np.digitize(SIZE, [-1, 0, 1]).astype(str)[40:].tolist()


UNDECIDED = [
    # labels, options, what is said, an option that decides, and the first grades then
    ([spelled(*ends) for ends in ENDS], [], "look like brackets of amounts: give", None, BANDS),
    (AGES * 100, [], "look like brackets", None, AGE_BANDS),
    (PAY * 100, ["--grades", ",".join(PAY[:3])], "(--brackets)", None, ["under 70k", "70k to 90k"]),
    (VOTES, [], "a.csv: column 'label' holds lists such as", None, [-2]),
    *((VOTES, more, LISTS, None, [-2]) for more in (["--grades", "-2..3"], ["--brackets"])),
    (coded("99"), [], "99 (40 rows) lies far from the other grades", "99", [0, 1, 2, 3]),
    (
        coded("-"),
        [],
        "'-' (40 rows): leave such rows out, in files with na=['-'] (--na -)",
        "-",
        [0, 1],
    ),
    *(
        (coded(words), [], f"'{words}' (40 rows)", words, [0, 1, 2, 3])
        for words in ("Prefer not to answer", "Don’t know")
    ),
]


@pytest.mark.parametrize(("labels", "more", "message", "code", "grades"), UNDECIDED)
def test_labels_that_may_mean_two_things_are_refused_until_an_option_decides(
    labels, more, message, code, grades, tmp_path
):
    path, label = write(tmp_path / "a.csv", label=labels), ["--label", "label"]
    printed = refused(tmp_path, path, *label, *more)
    assert message in printed
    if code:
        assert "--grades" in printed
        model, _ = trained(tmp_path, path, *label, "--na", code)
        assert model.training["rows"] == 360
    elif labels is VOTES:
        assert "skip" not in printed
        model, _ = trained(tmp_path, path, "--ratings", "label")
        printed = said("evaluate", path, "--model", tmp_path / "m", *label, code=1)
        assert "(--ratings label)" in " ".join(printed.split())
    else:
        assert "(--brackets)" in printed
        model, _ = trained(tmp_path, path, *label, "--brackets")
    assert model.classes_[: len(grades)].tolist() == grades
    if code == "99":  # a grade after all
        assert trained(tmp_path, path, *label, "--grades", "0,1,2,3,99")


def test_two_columns_that_look_like_amounts_name_the_option(two_columns, tmp_path):
    printed = refused(tmp_path, two_columns, *TWO)
    assert "two.csv: 'low' and 'high' look like brackets of amounts" in printed
    assert "(--brackets)" in printed
    assert "--grades" in printed
    two_columns.write_text(two_columns.read_text().replace("\n", "\n0.5,,\n", 1))  # no label
    assert "(--brackets)" in refused(tmp_path, two_columns, *TWO)
    model, _ = trained(tmp_path, two_columns, *TWO, "--grades", "0,25000,40000,50000,75000,100000")
    assert model.classes_[0] == 0


@pytest.mark.parametrize("widest", [1, 3, 40])
@pytest.mark.parametrize("n_grades", [5, 10, 20, 100])
def test_ranges_of_whole_grades_are_not_taken_for_amounts(n_grades, widest, tmp_path):
    rng = np.random.default_rng(0)
    low = rng.integers(1, n_grades, 400)  # no label is exact
    high = np.minimum(low + rng.integers(1, widest + 1, 400), n_grades)
    path = write(tmp_path / "a.csv", low=low, high=high)
    assert len(trained(tmp_path, path, *TWO)[0].classes_) > 3
    ordspan.OrdinalPA().fit(SIZE.reshape(-1, 1), np.column_stack([low, high]))


@pytest.mark.parametrize(
    "words",
    [
        *("--edges 1k --grades a,b", "--brackets --grades a,b", "--cut 5 --brackets"),
        *("--edges cheap", "--cut 1", "--ratings size"),
    ],
)
def test_options_that_contradict_each_other_are_refused(words, written, tmp_path):
    refused(tmp_path, written, "--label", "income", *words.split())


@pytest.mark.parametrize("how", [(), ("--edges", "25k,50k")])
def test_a_stopped_training_goes_on_to_the_same_bytes(how, written, tmp_path):
    words = ("train", written, "--label", "income", "--brackets", *how)
    check_resumes(tmp_path, *words, "--checkpoint-every", 100)


def counts_of_grades(path, tmp_path, cut):
    """Rows of each grade, after training with labels that are cut."""
    model, _ = trained(tmp_path, path, "--label", "gpa", "--cut", cut)
    confusion = ordspan.evaluate_files(path, tmp_path / "m")["confusion"]
    return model.classes_.tolist(), np.sum(confusion, axis=1).tolist()


def test_measurements_are_refused_until_they_are_cut(tmp_path):
    grade = (2 + INCOME / 50_000).round(2)
    path = write(tmp_path / "a.csv", gpa=grade)
    assert "--cut 5 for fifths, or --cut 3.4,3.8,4.2" in refused(tmp_path, path, "--label", "gpa")
    bands, counts = counts_of_grades(path, tmp_path, "2.5,3,4")
    assert bands == ["under 2.5", "2.5 to 3", "3 to 4", "4 or more"]
    assert counts == np.bincount(np.searchsorted([2.5, 3, 4], grade, "right")).tolist()
    path = write(tmp_path / "b.csv", gpa=2 + INCOME / 50_000)
    assert counts_of_grades(path, tmp_path, "5")[1] == [80] * 5


def test_whole_numbers_as_measurements_are_refused_until_they_are_cut(tmp_path):
    path = write(tmp_path / "a.csv", gpa=INCOME.round().astype(int))
    assert "different numbers, as measurements are" in refused(tmp_path, path, "--label", "gpa")
    bands, counts = counts_of_grades(path, tmp_path, "5")
    assert counts == pytest.approx([80] * 5, abs=1)  # two incomes are the same
    assert max(map(len, bands)) < 20


THIRDS = np.searchsorted([30_000, 60_000], INCOME)
POINTS = {
    "large": ["10.000-39.999", "40.000-69.999", "70.000+"],
    "text": ["under 1.250", "1.250 - 2.750", "2.750 or more"],
    "mixed": ["under 750", "750 - 1.249", "1.250 or more"],
    "billions": ["under 1.000.000.000", "1.000.000.000 - 2.999.999.999", "3.000.000.000+"],
    "single": ["under 500", "500-999", "1.000"],
}


@pytest.mark.parametrize("name", POINTS)
def test_points_between_thousands_are_asked_about(name, tmp_path):
    path, how = tmp_path / "a.csv", ("--label", "income", "--brackets")
    labels = np.array(POINTS[name])[THIRDS]
    model, _ = trained(tmp_path, write(path, income=np.char.replace(labels, ".", "")), *how)
    (tmp_path / "m").rename(tmp_path / "model")
    assert "thousands? If so, write" in refused(tmp_path, write(path, income=labels), *how)
    assert "thousands?" in said("evaluate", path, "--model", tmp_path / "model", code=1)
    if name != "single":  # with a decimal comma they separate thousands
        table = pl.DataFrame({"size": SIZE, "income": labels})
        table.write_csv(path, separator=";", decimal_comma=True)
        again, _ = trained(tmp_path, path, *how, "--decimal", ",")
        assert again.classes_.tolist() == model.classes_.tolist()
        other = write(tmp_path / "b.csv", income=labels)  # of a file with points they do not
        both = said("evaluate", path, other, "--model", tmp_path / "model", code=1)
        assert "b.csv: " in both
        assert "thousands?" in both


def test_three_decimals_of_measurements_are_no_thousands(tmp_path):
    path = write(tmp_path / "a.csv", gpa=np.char.mod("%d.999", INCOME // 1000))
    assert sum(counts_of_grades(path, tmp_path, "5")[1]) == INCOME.size
    path = write(tmp_path / "b.csv", gpa=INCOME.round(1) / 100)  # as numbers: 812.375 and 81.25
    assert sum(counts_of_grades(path, tmp_path, "100,1000")[1]) == INCOME.size


def test_a_decimal_comma_is_no_sign_between_thousands(tmp_path):
    rows = "".join(f"{x};{3 + x:.3f}\n" for x in SIZE).replace(".", ",")
    (tmp_path / "a.csv").write_text("size;gpa\n" + rows)
    truth = np.bincount(np.searchsorted([2.5, 3.5], (3 + SIZE).round(3), "right"))
    assert counts_of_grades(tmp_path / "a.csv", tmp_path, "2.5,3.5")[1] == truth.tolist()


def test_ratings_in_columns_and_in_lists_are_the_same_labels(tmp_path):
    votes = np.clip(SIZE.round() + RNG.integers(-1, 2, (8, 400)), -2, 3).astype(int)
    gaps = RNG.random(votes.shape) < 0.1
    gaps[:, 0] = True  # nobody rated the first row
    cells = np.where(gaps, "", votes.astype(str))
    wide = write(tmp_path / "wide.csv", **{f"judge {k}": row for k, row in enumerate(cells)})
    lists = [f"[{', '.join(cell for cell in row if cell)}]" for row in cells.T]
    tall = write(tmp_path / "tall.csv", votes=lists)
    names = ",".join(f"judge {k}" for k in range(8))
    other, _ = trained(tmp_path, tall, "--ratings", "votes")
    model, notes = trained(tmp_path, wide, "--ratings", names)
    assert "1 row without a label was left out" in notes
    assert model.thresholds.tolist() == other.thresholds.tolist()
    y = ordspan.from_ratings(np.where(gaps, np.nan, votes).T[1:], classes=model.classes_)
    rows = pl.DataFrame({"size": SIZE[1:]})
    found = ordspan.evaluate_files(wide, tmp_path / "m", ratings=names.split(","))
    assert -model.score(rows, y) == pytest.approx(found["mae"])
    assert found["rows"] == 399


EARNED = "How much total combined money did all members of your HOUSEHOLD earn last year?"
FIVE_BANDS = ["under 25k", "25k to 50k", "50k to 100k", "100k to 150k", "150k or more"]
FOUR_BANDS = ["under 40k", "40k to 75k", "75k to 125k", "125k or more"]
TEN = ["10k", "25k", "50k", "75k", "100k", "125k", "150k", "175k", "200k"]
TEN_BANDS = ["under 10k", *(f"{a} to {b}" for a, b in pairwise(TEN)), "200k or more"]
NO_ANSWER = ("--na", "Prefer not to answer", "--na", "-")
SURVEYS = {
    "comma-survey": (836, "Household Income", FIVE_BANDS),
    "flying-etiquette": (826, "Household Income", FIVE_BANDS),
    "food-world-cup-data": (954, "Household Income", FIVE_BANDS),
    "sleeping-alone-data": (810, "Household Income", FIVE_BANDS),
    "StarWars": (858, "Household Income", FIVE_BANDS),
    "steak-risk-survey": (430, "Household Income", FIVE_BANDS),
    "thanksgiving-2015-poll-data": (889, EARNED, TEN_BANDS, *NO_ANSWER),
    "weather-check": (746, EARNED, TEN_BANDS, *NO_ANSWER),
    "nonvoters_data": (5836, "income_cat", FOUR_BANDS),
}


@pytest.mark.parametrize("name", SURVEYS)
def test_income_of_surveys(name, data_dir, tmp_path):
    """As they were published, with options for the label only."""
    n_rows, label, bands, *codes = SURVEYS[name]
    path, words = data_dir / "fivethirtyeight_surveys" / f"{name}.csv", ["--model", tmp_path / "m"]
    model, _ = trained(tmp_path, path, "--label", label, "--brackets", *codes)
    assert model.classes_.tolist() == bands
    assert summary("evaluate", path, *words)["rows"] == n_rows
    assert said("predict", path, *words, "--range", "0.9")


@pytest.mark.parametrize("name", ["amazonReviewSnippets", "tweets"])
def test_sentences_rated_by_twenty_people(name, data_dir, tmp_path):
    columns, path = {}, tmp_path / "rated.csv"
    for column, kind, place in (("text", "GroundTruth", 2), ("judges", "anonDataRatings", 3)):
        text = (data_dir / "vader_raters" / f"{name}_{kind}.txt").read_bytes()
        lines = text.decode("utf-8-sig", errors="replace").splitlines()
        columns[column] = [line.split("\t")[place] for line in lines[:600]]
    pl.DataFrame(columns).write_csv(path)
    model, _ = trained(tmp_path, path, "--ratings", "judges")
    assert model.classes_.tolist() == list(range(-4, 5))
    found = summary("evaluate", path, "--model", tmp_path / "m")
    assert found["range_rows"] > 200
    assert found["better_than_constant"]
    assert said("predict", path, "--model", tmp_path / "m", "--range", "0.9")
