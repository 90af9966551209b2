"""Files that were once read wrongly in silence, each against the same rows in a clean file."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file
from tables import ask

from ordspan.checkpoint import sole_writer


def table(n=400, seed=0):
    """Three numbers, a little noise, and grades in quarters."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 3)).round(2) * 3 + 5).round(2)
    score = X @ [1, 2, 3] + rng.normal(size=n)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["grade"] = np.digitize(score, np.quantile(score, [0.25, 0.5, 0.75])) + 1
    return frame


FRAME = table()
POSITIVE = FRAME.assign(**{name: FRAME[name].abs() + 1 for name in "abc"})


def asked(*words, code=0):
    answer = ask(*words)
    assert answer.exit_code == code, answer.output
    return answer.output


def trained(path, *words):
    model = path.parent / (path.name + ".model")
    told = asked(
        "train", path, "--label", "grade", "--model", model, "--overwrite", *words, "--json"
    )
    return model, json.loads(told)


def info(model):
    told = json.loads(asked("info", model, "--json"))
    return {row["feature"]: (row["mean"], row["weight"]) for row in told["weights"]}


def clean(folder, frame=FRAME):
    frame.to_csv(folder / "clean.csv", index=False)
    return trained(folder / "clean.csv")


def written(frame, path, **how):
    frame.to_csv(path, index=False, **how)
    return path


GERMAN = {"sep": ";", "decimal": ","}


def test_true_and_false_of_json_are_numbers_as_those_of_parquet(tmp_path):
    frame = FRAME.assign(flag=FRAME.a > 5)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "a.parquet")
    one, two = (info(trained(tmp_path / name)[0]) for name in ("a.jsonl", "a.parquet"))
    for feature, numbers in one.items():
        np.testing.assert_allclose(numbers, two[feature])
    assert one["flag"][0] == pytest.approx(frame.flag.mean())


def test_labels_are_written_as_the_features_are(tmp_path):
    grades = FRAME.grade.map({1: "500", 2: "750", 3: "1.000", 4: "2.500"})
    path = written(FRAME.assign(grade=grades), tmp_path / "a.csv", **GERMAN)
    model, summary = trained(path)
    assert summary["classes"] == [500, 750, 1000, 2500]
    assert json.loads(asked("evaluate", path, "--model", model, "--json"))["mae"] < 0.3
    english = FRAME.assign(grade=grades.str.replace(".", ","))
    assert trained(written(english, tmp_path / "b.csv"))[1]["classes"] == [500, 750, 1000, 2500]


def test_numbers_that_may_mean_two_things_are_asked_for_or_read_as_they_go(tmp_path):
    three = {"float_format": "%.3f"}
    comma = written(POSITIVE, tmp_path / "comma.csv", **three)
    german = written(POSITIVE, tmp_path / "german.csv", **GERMAN, **three)
    pointed = written(POSITIVE, tmp_path / "pointed.csv", sep=";", **three)
    models = [trained(comma)[0], trained(german)[0], trained(pointed, "--decimal", ".")[0]]
    answer = asked("train", pointed, "--label", "grade", "--model", tmp_path / "x", code=1)
    assert "which may mean" in answer
    assert "--decimal ." in answer
    means = [info(model)["a"][0] for model in models]
    assert means == pytest.approx([POSITIVE.a.mean()] * 3)
    out = tmp_path / "out.csv"
    expected = None
    for model in models:
        for path in (comma, german):
            asked("predict", path, "--model", model, "--out", out)
            ranks = pl.read_csv(out)["rank"].to_list()
            expected = expected or ranks
            assert ranks == expected
        words = ["predict", pointed, "--model", model, "--out", out]
        if model == models[1]:  # the others have seen points as decimal signs
            assert "--decimal" in asked(*words, code=1)
            words += ["--decimal", "."]
        asked(*words)
        assert pl.read_csv(out)["rank"].to_list() == expected


@pytest.mark.parametrize("sep", [",", "\t", ";"])
def test_small_whole_numbers_beside_thousands_are_asked_about(tmp_path, sep):
    values = (FRAME.a * 200 + 100).round().astype(int)
    cells = [f"{v:,}".replace(",", "." if sep != ";" else ",") for v in values]
    path = written(pd.DataFrame({"a": cells, "grade": FRAME.grade}), tmp_path / "a.csv", sep=sep)
    words = ["train", path, "--label", "grade", "--model", tmp_path / "m"]
    assert "which may mean" in asked(*words, code=1)
    sign = "," if sep != ";" else "."
    asked(*words, "--decimal", sign)
    assert info(tmp_path / "m")["a"][0] == pytest.approx(values.mean())


def test_what_was_told_for_one_file_is_not_forced_on_others(tmp_path):
    german = written(FRAME, tmp_path / "german.csv", encoding="cp1252", **GERMAN)
    told = ["--decimal", ",", "--delimiter", ";", "--encoding", "cp1252"]
    model, _ = trained(german, *told)
    comma = written(FRAME, tmp_path / "comma.csv")
    found = [json.loads(asked("evaluate", p, "--model", model, "--json")) for p in (german, comma)]
    assert found[0]["mae"] == found[1]["mae"]


def test_files_that_are_written_differently_make_one_model(tmp_path):
    _, _expected = clean(tmp_path, POSITIVE)
    one = written(POSITIVE[:300], tmp_path / "one.csv")
    two = written(POSITIVE[300:], tmp_path / "two.csv", **GERMAN)
    for files in ([one, two], [two, one]):
        model = tmp_path / "both"
        asked("train", *files, "--label", "grade", "--model", model, "--overwrite")
        means = [info(model)[name][0] for name in "abc"]
        assert means == pytest.approx(POSITIVE[list("abc")].mean().tolist())


def test_a_key_that_the_first_json_line_lacks_is_a_column(tmp_path):
    records = FRAME.to_dict("records")
    del records[0]["c"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    model, _summary = trained(tmp_path / "a.jsonl")
    assert set(info(model)) == {"a", "b", "c", "c is missing"}


def test_columns_that_only_some_files_have_are_left_out_and_said(tmp_path):
    one, two = written(FRAME[:200], tmp_path / "1.csv"), tmp_path / "2.csv"
    written(FRAME[200:].assign(extra=1.5), two)
    for files in ([one, two], [two, one]):
        words = ["train", *files, "--label", "grade", "--model", tmp_path / "m", "--overwrite"]
        assert "left out 'extra': not every file has it" in asked(*words)
    model, _ = trained(one)
    words = ["train", one, two, "--from", model, "--model", tmp_path / "n"]
    assert "does not know the column 'extra'" in asked(*words, code=1)
    dropped = asked("train", one, "--from", model, "--drop", "a", "--model", tmp_path / "n", code=1)
    assert "'a' is a feature" in dropped


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "customerID", "PassengerId", "row_id"])
def test_an_index_that_was_saved_is_not_learned(tmp_path, name):
    frame = FRAME.sort_values("grade").reset_index(drop=True).sample(frac=1, random_state=1)
    frame.to_csv(tmp_path / "a.csv", index_label=name)
    model, summary = trained(tmp_path / "a.csv")
    assert set(info(model)) == set("abc")
    assert summary["left_out"]
    frame.to_parquet(tmp_path / "a.parquet")
    assert set(info(trained(tmp_path / "a.parquet")[0])) == set("abc")


def held_out(folder, frame, test, name):
    frame.to_csv(folder / f"{name}.csv", index=False)
    model, summary = trained(folder / f"{name}.csv")
    return json.loads(asked("evaluate", test, "--model", model, "--json"))["mae"], summary


def test_rows_sorted_by_one_of_many_words_are_shuffled(tmp_path):
    rng = np.random.default_rng(0)
    n, towns = 12_000, rng.normal(size=300)
    town = rng.integers(0, 300, n)
    x = rng.normal(size=(n, 2)).round(3)
    score = x @ [1, -1] + 2 * towns[town] + rng.normal(0, 0.3, n)
    frame = pd.DataFrame(x, columns=["x", "y"]).assign(town=[f"t{i:03}" for i in town])
    frame["grade"] = np.digitize(score, [-1, 0, 1]) + 1
    test = written(frame[:3000], tmp_path / "test.csv")
    mixed, _ = held_out(tmp_path, frame[3000:], test, "mixed")
    ordered = {"town": "town", "grade": "grade"}
    for name, column in ordered.items():
        mae, summary = held_out(tmp_path, frame[3000:].sort_values(column), test, name)
        assert summary["shuffled"]
        assert mae <= 1.03 * mixed


def test_svmlight_rows_sorted_by_a_feature_are_shuffled(tmp_path):
    order = FRAME.sort_values("b")
    dump_svmlight_file(order[list("abc")], order.grade, str(tmp_path / "a.txt"), zero_based=False)
    dump_svmlight_file(FRAME[list("abc")], FRAME.grade, str(tmp_path / "b.txt"), zero_based=False)
    for name, sorted_by in (("a", True), ("b", False)):
        path = tmp_path / f"{name}.txt"
        told = asked("train", path, "--model", tmp_path / name, "--json")
        assert json.loads(told)["shuffled"] is sorted_by


@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_files_with_shifted_indices_are_refused(tmp_path, zero_based):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, base in zip(paths, (zero_based, not zero_based), strict=True):
        dump_svmlight_file(FRAME[list("abc")], FRAME.grade, str(path), zero_based=base)
    asked("train", paths[0], "--model", tmp_path / "m")
    for command in ("predict", "evaluate"):
        told = asked(command, paths[1], "--model", tmp_path / "m", code=1)
        assert f"indices begin at {int(zero_based)} here, but at {int(not zero_based)}" in told


def test_numbers_in_strings_are_numbers_but_codes_are_not(tmp_path):
    words = FRAME.assign(a=FRAME.a.map(str), code=[f"{i % 5:05}" for i in range(400)])
    words.to_parquet(tmp_path / "a.parquet")
    words.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name in ("a.parquet", "a.jsonl"):
        model, _ = trained(tmp_path / name)
        found = info(model)
        assert found["a"][0] == pytest.approx(FRAME.a.mean())
        assert "code = 00003" in found


def test_orders_of_grades_that_differ_are_refused(tmp_path):
    names = FRAME.grade.map(dict(enumerate("wxyz", start=1)))
    for path, order in (("a", "wxyz"), ("b", "zyxw")):
        grades = pd.Categorical(names, list(order), ordered=True)
        FRAME.assign(grade=grades).to_parquet(tmp_path / f"{path}.parquet")
    assert trained(tmp_path / "b.parquet")[1]["classes"] == list("zyxw")
    words = ["train", tmp_path / "a.parquet", tmp_path / "b.parquet", "--label", "grade"]
    assert "different orders of the grades" in asked(*words, "--model", tmp_path / "m", code=1)
    asked(*words, "--order", "w,x,y,z", "--model", tmp_path / "m")


def test_gaps_that_are_new_at_prediction_are_told(tmp_path):
    model, _ = clean(tmp_path)
    path = written(FRAME.assign(a=""), tmp_path / "new.csv")
    told = asked("predict", path, "--model", model, "--out", tmp_path / "out.csv")
    assert "missing values, which training never had, were filled: a (400 rows)" in told


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%Y-%m-%d %H:%M"])
def test_dates_are_refused_in_every_form(tmp_path, form):
    days = pd.date_range("2020-01-01", periods=400).strftime(form)
    frame = FRAME.assign(day=days)
    written(frame, tmp_path / "a.csv")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name in ("a.csv", "a.jsonl"):
        words = ["train", tmp_path / name, "--label", "grade", "--model", tmp_path / "m"]
        assert "column 'day' holds dates" in asked(*words, code=1)


def test_moments_of_parquet_can_be_taken_as_words_or_left_out(tmp_path):
    FRAME.assign(day=pd.date_range("2020-01-01", periods=4).repeat(100)).to_parquet(
        tmp_path / "a.parquet"
    )
    words = ["train", tmp_path / "a.parquet", "--label", "grade", "--model", tmp_path / "m"]
    assert "--text day" in asked(*words, code=1)
    asked(*words, "--text", "day")
    assert any(name.startswith("day = 2020-01-01") for name in info(tmp_path / "m"))
    asked("predict", tmp_path / "a.parquet", "--model", tmp_path / "m", "--out", tmp_path / "o.csv")


def test_a_training_that_runs_is_not_called_interrupted(tmp_path):
    path = written(FRAME, tmp_path / "a.csv")
    (tmp_path / "m.checkpoint").write_bytes(b"")
    words = ["train", path, "--label", "grade", "--model", tmp_path / "m"]
    assert "from a training that was interrupted" in asked(*words, code=1)
    with sole_writer(tmp_path / "m"):
        assert "is being trained by another process" in asked(*words, code=1)


def test_a_column_named_twice_is_used_once(tmp_path):
    path = written(FRAME, tmp_path / "a.csv")
    _model, summary = trained(path, "--features", "a,a,b")
    assert summary["features"] == 2


def test_a_falling_order_is_an_order(tmp_path):
    path = written(FRAME, tmp_path / "a.csv")
    assert trained(path, "--order", "4..1")[1]["classes"] == [4, 3, 2, 1]
