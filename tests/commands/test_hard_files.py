"""Files that were once read wrongly in silence, each against the same rows in a clean file."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file
from tables import ask

import ordspan
from ordspan.checkpoint import sole_writer
from ordspan.commands import train_run
from ordspan.commands.train import TrainJob
from ordspan.data import stream
from ordspan.files import arrow_file


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
        if model == models[1]:  # the others have seen points as decimal separators
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
        assert f"indices start at {int(zero_based)} here, but at {int(not zero_based)}" in told


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
    asked(*words, "--grades", "w,x,y,z", "--model", tmp_path / "m")


def test_gaps_that_are_new_at_prediction_are_told(tmp_path):
    model, _ = clean(tmp_path)
    path = written(FRAME.assign(a=""), tmp_path / "new.csv")
    told = asked("predict", path, "--model", model, "--out", tmp_path / "out.csv")
    assert "missing values, which training did not have, were filled: a (400 rows)" in told


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
    assert "left from an interrupted training" in asked(*words, code=1)
    with sole_writer(tmp_path / "m"):
        assert "is being trained by another process" in asked(*words, code=1)


def test_a_column_named_twice_is_used_once(tmp_path):
    path = written(FRAME, tmp_path / "a.csv")
    _model, summary = trained(path, "--features", "a,a,b")
    assert summary["features"] == 2


def test_a_falling_order_is_an_order(tmp_path):
    path = written(FRAME, tmp_path / "a.csv")
    assert trained(path, "--grades", "4..1")[1]["classes"] == [4, 3, 2, 1]


def test_signs_that_show_late_in_a_file_are_known_to_every_command(tmp_path):
    rng = np.random.default_rng(0)
    income = np.concatenate([rng.integers(100, 999, 700), rng.integers(100, 5000, 2300)])
    cells = [f"{v:,}".replace(",", ".") for v in income]
    rate = [f"{i % 9}" if i < 700 else f"{i % 9},25" for i in range(3000)]
    frame = pd.DataFrame({"income": cells, "rate": rate})
    frame["grade"] = np.digitize(income, [500, 1000, 3000]) + 1
    path = written(frame, tmp_path / "a.csv", sep=";")
    model, _ = trained(path)
    assert info(model)["income"][0] == pytest.approx(income.mean())
    found = json.loads(asked("evaluate", path, "--model", model, "--json"))
    assert found["mae"] < 0.5 * found["best_constant"]["mae"]["value"]
    asked("train", path, "--from", model, "--model", tmp_path / "more")
    asked("predict", path, "--model", model, "--out", tmp_path / "out.csv", "--on-bad-row", "raise")


@pytest.mark.parametrize("write", ["to_parquet", "to_json", "to_csv"])
def test_columns_taken_as_words_are_the_same_words_in_learning(tmp_path, write):
    columns = {
        "when": pd.date_range("2020-01-01", periods=4).repeat(100),
        "yes": FRAME.a > 5,
        "small": np.tile(np.array([0.1, 1e-7], dtype=np.float32), 200),
    }
    path = tmp_path / f"a.{ {'to_parquet': 'parquet', 'to_json': 'jsonl', 'to_csv': 'csv'}[write] }"
    more = {"orient": "records", "lines": True} if write == "to_json" else {}
    more = {"index": False} if write == "to_csv" else more
    getattr(FRAME.assign(**columns), write)(path, **more)
    model, summary = trained(path, "--text", "when,yes,small")
    assert not any("not seen in training" in note for note in summary["notes"])
    told = json.loads(asked("info", model, "--json"))
    words = [row for row in told["weights"] if " = " in row["feature"]]
    assert len(words) == 8
    assert all(row["weight"] for row in words)


def test_blanks_around_words_make_no_other_words(tmp_path):
    words = np.where(FRAME.a > 5, "red", np.where(FRAME.b > 5, "red ", " blue"))
    model, _ = trained(written(FRAME.assign(colour=words), tmp_path / "a.csv"))
    assert {"colour = red", "colour = blue"} <= set(info(model))
    assert len(info(model)) == 5


def test_sorted_parquet_of_few_row_groups_is_mixed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12_000, 2))
    grade = np.digitize(x @ [1, 1] + rng.normal(0, 0.7, 12_000), [-1, 0, 1]) + 1
    frame = pd.DataFrame(x, columns=["x", "y"]).assign(grade=grade)
    test = written(frame[:3000], tmp_path / "test.csv")
    maes = []
    for order in (frame[3000:], frame[3000:].sort_values("grade")):
        monkeypatch.setattr(train_run, "BUFFER_BYTES", 64 * 3000)
        monkeypatch.setattr(arrow_file, "batch_rows", lambda n_columns: 100)
        order.to_parquet(tmp_path / "a.parquet", row_group_size=3000)
        model, summary = trained(tmp_path / "a.parquet")
        maes.append(json.loads(asked("evaluate", test, "--model", model, "--json"))["mae"])
    assert summary["shuffled"]
    assert maes[1] <= 1.03 * maes[0]


def test_a_key_that_first_occurs_late_is_a_column(tmp_path):
    records = [dict(row) for row in FRAME.to_dict("records") * 5]
    for row in records[:700]:
        del row["c"]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records))
    model, _ = trained(path)
    assert "c" in info(model)
    found = json.loads(asked("evaluate", path, "--model", model, "--json"))
    assert found["better_than_constant"]


def test_scores_need_a_label_for_every_row(tmp_path):
    model, _ = clean(tmp_path)
    with pytest.raises(ValueError, match="the table has 400 rows, but y has 1 labels"):
        ordspan.load(model).score(FRAME, [3])


def test_a_kernel_learns_words_from_a_pipe(tmp_path):
    towns = np.random.default_rng(0).choice(["Ulm", "Graz"], 400)
    content = FRAME.assign(town=towns).to_csv(index=False)
    words = ["--label", "grade", "--grades", "1..4", "--format", "csv", "--learner", "kernel"]
    answer = ask("train", "-", *words, "--model", tmp_path / "m", "--json", input=content)
    summary = json.loads(answer.output)
    assert summary["mae"][0] < 0.7 * summary["constant"]["mae"]


def test_streams_say_that_rows_come_sorted(tmp_path):
    path = written(FRAME.sort_values("grade"), tmp_path / "a.csv")
    assert any("sorted by labels" in note for note in stream(path, label="grade").notes)


def test_what_a_model_decides_cannot_be_told_in_python_either(tmp_path):
    model, _ = clean(tmp_path)
    with pytest.raises(ValueError, match="learner cannot be given with start"):
        TrainJob([str(tmp_path / "clean.csv")], start=str(model), learner="kernel")


def test_true_and_false_are_the_same_in_every_format(tmp_path):
    frame = FRAME.assign(flag=FRAME.a > 5)
    frame.to_parquet(tmp_path / "a.parquet")
    model, _ = trained(tmp_path / "a.parquet")
    maes = []
    for cells in (frame.flag, frame.flag.map(str).str.upper(), frame.flag.map(str).str.lower()):
        path = written(frame.assign(flag=cells), tmp_path / "a.csv")
        maes.append(json.loads(asked("evaluate", path, "--model", model, "--json"))["mae"])
        assert set(info(trained(path)[0])) == {*"abc", "flag"}
    assert len(set(maes)) == 1
    mixed = frame.assign(flag=np.where(frame.b > 9, "unknown", frame.flag.map(str)))
    assert "flag = unknown" in info(trained(written(mixed, tmp_path / "b.csv"))[0])


def test_going_on_can_be_repeated(tmp_path):
    path = written(FRAME, tmp_path / "a.csv")
    for number, words in enumerate((["--drop", "c"], ["--features", "a,b"])):
        first, _ = trained(path, *words)
        for step in range(3):
            model = tmp_path / f"{number}{step}"
            asked("train", path, "--from", first, "--model", model)
            first = model


def test_the_share_of_bad_rows_is_that_of_the_file(tmp_path):
    cells = np.where(np.arange(400) % 25 == 0, "bad", FRAME.a.map(str))
    path = written(FRAME.assign(a=cells), tmp_path / "a.csv")
    skip = ["--on-bad-row", "skip"]
    for words in (["--hold-out", "0.9"], ["--passes", "3"], ["--learner", "svm"]):
        model = tmp_path / "m"
        told = asked(
            "train", path, "--label", "grade", "--model", model, "--overwrite", *skip, *words
        )
        assert "16 of 400 rows (4.0%) were bad and were skipped" in told


def test_money_may_be_written_with_its_code(tmp_path):
    for number, form in enumerate(("{} EUR", "CHF {}", "US${}", "{:.2f} kr")):
        path = written(POSITIVE.assign(a=POSITIVE.a.map(form.format)), tmp_path / f"{number}.csv")
        assert info(trained(path)[0])["a"][0] == pytest.approx(POSITIVE.a.mean())


def test_rows_that_are_all_bad_are_written_and_told(tmp_path):
    model, _ = clean(tmp_path)
    path, out = tmp_path / "new.csv", tmp_path / "out.csv"
    path.write_text("a,b,c\nx,1,2\n")
    told = asked("predict", path, "--model", model, "--out", out)
    assert "1 of 1 rows could not be predicted" in told
    assert "not a number" in pl.read_csv(out)["reason"][0]


@pytest.mark.parametrize("words", [("false", "true"), ("False", "True"), ("no", "yes")])
def test_grades_that_say_true_and_false_are_words(tmp_path, words):
    grades = np.array(words)[(FRAME.grade > 2).astype(int)]
    path = written(FRAME.assign(grade=grades), tmp_path / "a.csv")
    assert "--grades" in asked("train", path, "--label", "grade", "--model", tmp_path / "m", code=1)
    model, summary = trained(path, "--grades", ",".join(words))
    assert summary["classes"] == list(words)
    assert json.loads(asked("evaluate", path, "--model", model, "--json"))["mae"] < 0.2
