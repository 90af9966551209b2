"""Files of surveys: Excel with titles, SPSS, Stata, and codes for no answer."""

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyreadstat
import pytest

import ordspan
from serving.served import serving
from tables import read_rows, said, summary

N = 300
VIEWS = {1: "disagree", 2: "neutral", 3: "agree", 8: "Don't know", 9: "Refused"}
TOWNS = {1: "Ulm", 2: "Graz"}


def answers(seed=0):
    """Age with gaps coded 99, a town, a scale with labels at its ends, and a view made of them."""
    rng = np.random.default_rng(seed)
    age, town = rng.integers(18, 60, N).astype(float), rng.integers(1, 3, N).astype(float)
    scale = rng.integers(0, 11, N).astype(float)
    score = (age - 40) / 20 + (town == 2) + (scale - 5) / 5 + rng.normal(0, 0.3, N)
    view = np.digitize(score, [-0.3, 0.9]) + 1.0
    age[::20], view[::30], view[1::60] = 99, 8, 9
    return pd.DataFrame({"age": age, "town": town, "scale": scale, "view": view})


TABLE = answers()
LABELLED = TABLE.assign(view=TABLE["view"].map(VIEWS), town=TABLE["town"].map(TOWNS))
ANSWERED = int(TABLE["view"].isin([1, 2, 3]).sum())


def write_survey(path, table=TABLE):
    labels = {"view": VIEWS, "town": TOWNS, "scale": {0: "not at all", 10: "fully"}}
    if path.suffix == ".sav":
        gone = {"age": [99], "view": [{"lo": 8, "hi": 9}]}
        pyreadstat.write_sav(table, path, variable_value_labels=labels, missing_ranges=gone)
    else:
        marked = table.assign(
            age=["a" if age == 99 else age for age in table["age"]],
            view=[{8: "a", 9: "b"}.get(view, view) for view in table["view"]],
        )
        marked = marked.astype({"age": object, "view": object})
        pyreadstat.write_dta(
            marked,
            path,
            variable_value_labels=labels | {"view": {k: VIEWS[k] for k in (1, 2, 3)}},
            missing_user_values={"age": ["a"], "view": ["a", "b"]},
        )
    return path


def workbook(path, **sheets):
    """An Excel file with the rows of each sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        page = book.create_sheet(name)
        for row in rows:
            page.append(list(row))
    book.save(path)
    return path


def rows_of(table):
    return [table.columns, *table.itertuples(index=False)]


def train(path, *words):
    """What to ask for to train from a table with codes for no answer."""
    grades = ["--grades", "disagree,neutral,agree", "--na", CODES]
    return ["train", path, "--label", "view", *grades, "--model", path.parent / "m", *words]


def test_a_survey_goes_through_every_command_with_no_option_but_the_label(tmp_path):
    model, out, weights = tmp_path / "m", tmp_path / "out.csv", []
    for name in ("a.sav", "a.dta"):
        path = write_survey(tmp_path / name)
        found = summary("train", path, "--label", "view", "--model", model, "--overwrite")
        assert found["classes"] == ["disagree", "neutral", "agree"]
        assert found["rows"] == ANSWERED
        notes = " ".join(found["notes"])
        assert f"{N - ANSWERED} rows without a label were left out" in notes
        assert "so codes stay: scale" in notes
        assert "marked: age (3.5%)" in notes
        weights.append(ordspan.load(model).coef)
        assert summary("evaluate", path, "--model", model)["rows"] == ANSWERED
        said("predict", path, "--model", model, "--out", out, "--overwrite")
        assert {row["prediction"] for row in read_rows(out)} == {"disagree", "neutral", "agree"}
    assert {"age is missing", "town = Graz", "scale"} <= weights[0].keys()
    assert [*weights[0].items()] == [*weights[1].items()]


def test_value_labels_are_taken_as_they_stand(tmp_path):
    labels = {"view": {1: "1 - no ", 2: "2 - perhaps", 3: "$3,000 or more"}}
    table = TABLE[TABLE["view"] < 8][["age", "view"]]
    pyreadstat.write_sav(table, tmp_path / "a.sav", variable_value_labels=labels)
    words = ["train", tmp_path / "a.sav", "--label", "view", "--model", tmp_path / "m"]
    assert summary(*words)["classes"] == ["1 - no", "2 - perhaps", "$3,000 or more"]


CODES = 'age:99,"Don\'t know",Refused'


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_codes_are_missing_for_everything_the_model_reads_and_kept_as_written(tmp_path, ending):
    path, model, out = tmp_path / f"a.{ending}", tmp_path / "m", tmp_path / "out.csv"
    table = pl.from_pandas(LABELLED.astype({"age": int}))
    getattr(table, {"jsonl": "write_ndjson"}.get(ending, f"write_{ending}"))(path)
    found = summary(*train(path))
    assert found["rows"] == ANSWERED
    assert "codes for no answer: age (15), view (15)" in found["notes"]
    assert summary("evaluate", path, "--model", model)["rows"] == ANSWERED

    loaded = ordspan.load(model)
    assert loaded.options.na == ("age:99", "Don't know", "Refused")
    asked = table.drop("view").to_dicts()
    gaps = [row | {"age": None} if row["age"] == 99 else row for row in asked]
    scores = loaded.latent(asked).tolist()
    assert scores == loaded.latent(gaps).tolist()
    said("predict", path, "--model", model, "--keep", "view,age", "--out", out)
    rows = read_rows(out)
    assert [float(row["score"]) for row in rows] == pytest.approx(scores, rel=1e-12)
    assert [row["view"] for row in rows] == table["view"].to_list()
    assert [int(row["age"]) for row in rows] == table["age"].to_list()
    with serving(tmp_path / "state", loaded) as client:
        answer = client.post("/predict", json=asked).json()
    assert [row["score"] for row in answer] == pytest.approx(scores, rel=1e-12)
    assert "as no answer, for which" in said("export", model, tmp_path / "m.onnx", code=1)


def test_codes_may_be_numbers_in_python_and_are_found_however_they_are_written(tmp_path):
    table = pd.DataFrame({"x": [1.5, 99, 2, 98] * 10, "g": ["1", "2", "99.0", "-"] * 10})
    table.to_csv(tmp_path / "a.csv", index=False)
    (batch,) = ordspan.stream(tmp_path / "a.csv", label="g", na=[98, 99, "-"])
    assert batch.y.tolist() == [1, 2] * 10
    assert batch.X[:2].tolist() == [[1.5, 0], [1.5, 1]]


@pytest.mark.parametrize("cells", [[99], [98, 99], [-99], [999], [-999, -998]])
def test_a_code_of_nines_far_outside_is_noted(tmp_path, cells):
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 50, N).astype(float)
    table = pd.DataFrame({"age": ages, "x": rng.normal(size=N), "g": rng.integers(1, 4, N)})
    table.loc[: 4 * len(cells) - 1, "age"] = np.repeat(cells, 4)
    table.to_csv(tmp_path / "a.csv", index=False)
    words = ["train", tmp_path / "a.csv", "--label", "g", "--model", tmp_path / "m"]
    told = said(*words)
    shown = ", ".join(map(str, cells))
    assert f"column 'age' holds {shown} in {4 * len(cells)} rows, far outside" in told
    na = ",".join(f"age:{code}" for code in cells)
    assert f"(--na {na})" in told
    assert "far outside" not in said(*words, "--na", na, "--overwrite")


def test_a_second_line_of_the_header_is_left_out_and_counts_as_a_row(tmp_path):
    header = [["id", "Films you saw", "", "view"], ["", "Episode I", "Episode II", "Response"]]
    good = [[f"{i}", "Episode I" * (i % 2), "", f"{i % 3}"] for i in range(60)]
    rows = [*header, *good, ["", "", "", "odd"]]
    (tmp_path / "a.csv").write_text("\n".join(map(",".join, rows)))
    for path in (tmp_path / "a.csv", workbook(tmp_path / "a.xlsx", answers=rows)):
        words = ["train", path, "--label", "view", "--grades", "0..2"]
        words += ["--model", tmp_path / path.suffix]
        assert f"{path.name}, row 62: column 'view' holds 'odd'" in said(*words, code=1)
        found = summary(*words, "--on-bad-row", "skip")
        assert "row 1 is a second line of the header, so it is left out" in found["notes"]
        assert (found["rows"], found["skipped"]) == (60, 1)


@pytest.mark.parametrize(
    "below", [["7", "Response", "x", "1"], ["", "I", "x", "1"], ["", "", "", ""]]
)
def test_a_row_with_an_answer_of_its_own_is_no_header(tmp_path, below):
    rows = [["id", "Films you saw", "", "view"], below, *([f"{i}", "I", "", "2"] for i in range(9))]
    (tmp_path / "a.csv").write_text("\n".join(map(",".join, rows)))
    rows = ordspan.stream(tmp_path / "a.csv", label="view", classes=[1, 2], keep=["id"])
    numbers = [number for batch in rows for number in batch.rows.tolist()]
    assert not [note for note in rows.notes if "second line" in note]
    assert numbers == [*range(1 + (not below[3]), 11)]


TITLES = [["Survey of views, 2024"], ["Source:", "our own"], []]


def test_titles_above_the_header_are_passed_over_and_dates_left_out(tmp_path):
    days = pd.date_range("2024-01-01", periods=N).to_pydatetime()
    rows = rows_of(LABELLED.assign(day=days))
    path = workbook(tmp_path / "a.xlsx", Sheet=[*TITLES, *rows])
    found = summary(*train(path))
    assert found["rows"] == ANSWERED
    notes = " ".join(found["notes"])
    assert "the columns are named in row 4 of the sheet" in notes
    assert "left out 'day' (dates)" in notes
    LABELLED.to_csv(tmp_path / "a.csv", index=False)
    coef = ordspan.load(tmp_path / "m").coef
    said(*train(tmp_path / "a.csv", "--overwrite"))
    assert ordspan.load(tmp_path / "m").coef == coef


def test_a_sheet_and_a_header_can_be_chosen(tmp_path):
    rows = [["a", "b"], [1, "2024"], *rows_of(LABELLED[["age", "view"]])]
    path = workbook(tmp_path / "a.xlsx", About=[["read the next sheet"]], data=rows)
    words, out = train(path), ["--model", tmp_path / "m"]
    told = said(*words, code=1)
    assert "the workbook has 2 sheets; choose one of About, data with sheet=" in told
    assert "no sheet 'dat'; choose one of About, data" in said(*words, "--sheet", "dat", code=1)
    assert "no column 'view'" in said(*words, "--sheet", "data", code=1)
    assert summary(*words, "--sheet", "data", "--header-row", 3)["rows"] == ANSWERED
    assert summary("evaluate", path, *out)["rows"] == ANSWERED
    said("predict", path, *out, "--out", tmp_path / "out.csv")
    assert len(read_rows(tmp_path / "out.csv")) == N
    assert "no column 'age'; the" in said("predict", path, *out, "--header-row", 1, code=1)
    workbook(path, Sheet=[["Views"], [1.5, 2, "agree"], [2.5, 3, "agree"]])
    told = said(*words, "--overwrite", code=1)
    assert "which row names the columns? The first full one, row 2, holds '1.5'" in told
    assert "--header-row N" in told


@pytest.mark.parametrize("name", ["a.xlsx", "a.txt"])
def test_separated_values_under_another_name_are_read(tmp_path, name):
    TABLE[["age", "scale", "town"]].to_csv(tmp_path / name, index=False, sep=";")
    told = said("train", tmp_path / name, "--label", "town", "--model", tmp_path / "m")
    assert f"{name} holds separated values, so it is read as CSV" in told
    assert f"{N} rows" in told


@pytest.mark.parametrize("name", ["a.xlsx", "a.sav", "a.dta"])
def test_a_damaged_file_is_refused_by_name_or_read(tmp_path, name):
    path = tmp_path / name
    write = write_survey if name != "a.xlsx" else workbook
    sheets = {"Sheet": rows_of(LABELLED[:20])} if name == "a.xlsx" else {}
    whole = write(path, **sheets).read_bytes()
    rng, refused = np.random.default_rng(0), 0
    for _ in range(40):
        content = bytearray(whole)
        for place in rng.integers(len(whole), size=8).tolist():
            content[place] = int(rng.integers(256))
        path.write_bytes(content)
        try:
            for _ in ordspan.stream(path, label="view", classes=[*"ab"], on_bad_row="skip"):
                pass
        except ValueError as error:
            refused += 1
            assert name in str(error)  # noqa: PT017
    assert refused


def test_all_problems_are_told_at_once(tmp_path):
    table = LABELLED.assign(
        income=[f"${i},{100 + i}" for i in range(N)], share=[f"{i % 70} %" for i in range(N)]
    )
    table.to_csv(tmp_path / "a.csv", index=False)
    told = said("train", tmp_path / "a.csv", "--label", "view", "--model", tmp_path / "m", code=1)
    for part in (
        "a.csv: 3 problems",
        "1. ",
        "'income' cannot be a feature (numbers written as text, such as '$",
        "'share' cannot be a feature (numbers written as text, such as '1",
        "a.csv: column 'view': ",
        "--grades",
    ):
        assert part in " ".join(told.split())


def test_the_encoding_of_the_training_is_remembered_unless_a_file_is_utf_8(tmp_path):
    text = "Größe,grade\n" + "müde,3\nmäßig,1\n" * 60
    (tmp_path / "latin.csv").write_bytes(text.encode("latin-1"))
    (tmp_path / "utf.csv").write_text(text, encoding="utf-8")
    model = tmp_path / "model"
    ordspan.train_files(tmp_path / "latin.csv", model, label="grade", encoding="latin-1")
    for name in ("latin", "utf"):
        ordspan.predict_files(tmp_path / f"{name}.csv", model, tmp_path / f"{name}-graded.csv")
    graded = (tmp_path / "latin-graded.csv").read_bytes()
    assert graded == (tmp_path / "utf-graded.csv").read_bytes()
    assert b"\n3," in graded
    assert b"\n1," in graded


@pytest.mark.parametrize("sign", ",;")
def test_the_header_of_csv_may_stand_below_titles(sign, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Survey of 2024\n\n" + f"size{sign}grade\n" + f"1{sign}1\n2{sign}2\n" * 60)
    with pytest.raises(ValueError, match="--header-row N"):
        ordspan.train_files(path, tmp_path / "model", label="grade")
    model = ordspan.train_files(path, tmp_path / "model", label="grade", header_row=3)
    assert model.training["rows"] == 120
    ordspan.predict_files(path, tmp_path / "model", tmp_path / "b.csv")  # remembered
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 121
