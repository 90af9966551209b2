"""Answers are exported as a table that train takes."""

import json
import shlex

import polars as pl
import pytest
from at_work import annotating, told, write_items

from commands.tables import said
from ordspan import load

FIRST = ["item", "lower", "upper", "annotator", "seconds", "asked_by"]


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """What calls a session in which two people have answered, and one has skipped and undone."""
    folder = tmp_path_factory.mktemp("answered")
    path, ranks = write_items(folder, n=120)
    with annotating(folder / "state", path, id="id", drop=["town"]) as caller:
        caller.answer_many(ranks, 100)
        for _ in range(30):
            asked = caller.next("bob, of Ulm")
            rank = ranks[asked["item"]]
            caller.answer(asked, max(1, rank - 1), min(5, rank + 1), "bob, of Ulm")
        caller.skip(caller.next(), "s")
        caller.answer(caller.next(), 1)
        caller.undo("u")
        yield caller


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_every_answer_that_holds_is_a_row_that_train_takes(answered, tmp_path, ending):
    out, model = tmp_path / f"labels.{ending}", tmp_path / "m"
    assert "130 answers written" in told("--state", answered.engine.folder, "--export", out)
    table = {"csv": pl.read_csv, "parquet": pl.read_parquet, "jsonl": pl.read_ndjson}[ending](out)
    assert table.columns == [*FIRST, "size", "age"]
    items = pl.read_csv(answered.session.items.path)
    events = [event for event in answered.engine.events() if event.kind == "learn"][:-1]
    for row, event in zip(table.iter_rows(named=True), events, strict=True):
        note = json.loads(event.extra)
        item = items.row(note["item"], named=True)
        assert (row["lower"], row["upper"]) == (event.lower, event.upper)
        assert (row["annotator"], row["seconds"]) == (note["annotator"], 2.0)
        assert row["asked_by"] == note["asked_by"]
        assert (row["item"], row["size"], row["age"]) == (item["id"], item["size"], item["age"])
    words = ["--lower", "lower", "--upper", "upper", "--model", model]
    output = said("train", out, *words, "--no-shuffle")
    names = "left out 'item', 'annotator', 'seconds', 'asked_by' (added by ordspan annotate"
    assert names in " ".join(output.split())
    assert load(model).recipe.columns == answered.engine.model.recipe.columns
    assert load(model).classes_.tolist() == [1, 2, 3, 4, 5]


def test_other_files_with_such_columns_are_learned_from_as_ever(tmp_path):
    rows = "".join(f"{i % 3},{i % 3},{'ann' if i % 2 else 'bob'},{i % 7}\n" for i in range(60))
    (tmp_path / "a.csv").write_text("lower,upper,annotator,seconds\n" + rows)
    words = ["--lower", "lower", "--upper", "upper", "--model", tmp_path / "m"]
    said("train", tmp_path / "a.csv", *words)
    assert set(load(tmp_path / "m").recipe.columns) == {"annotator", "seconds"}


def test_items_named_by_sentences_are_not_learned_from(tmp_path):
    rows = "".join(f"it broke in week {i},{i % 3},{i % 3},ann,1,model,{i % 7}\n" for i in range(60))
    (tmp_path / "a.csv").write_text(",".join([*FIRST, "size"]) + f"\n{rows}")
    words = ["--lower", "lower", "--upper", "upper", "--model", tmp_path / "m"]
    said("train", tmp_path / "a.csv", *words)
    assert load(tmp_path / "m").recipe.columns == ("size",)


def test_the_printed_command_trains_named_grades(tmp_path):
    path, ranks = write_items(tmp_path)
    grades = ["very low", "low", "mid, or so", "high", "top"]
    codes = ["code,item", *(f"{i % 7},{i % 4}" for i in range(60))]
    rows = zip(path.read_text().split(), codes, strict=True)
    path.write_text("".join(f"{row},{code}\n" for row, code in rows))
    text = ["code", "item", "age"]  # of age all are different, so it is no feature
    state, out = tmp_path / "state", tmp_path / "labels.csv"
    with annotating(state, path, grades, id="id", text=text) as caller:
        caller.answer_many(ranks, 40)
        command = shlex.split(told("--state", state, "--export", out).splitlines()[-1])
        recipe = caller.engine.model.recipe
    assert pl.read_csv(out).columns == [*FIRST, "size", "town", "code", "item of the item"]
    assert command[:2] == ["ordspan", "train"]
    said(*command[1:-1], tmp_path / "m")
    model = load(tmp_path / "m")
    assert model.classes_.tolist() == grades
    names = {"item of the item": "item"}
    assert {names.get(n, n) for n in model.recipe.texts} == set(recipe.texts)
    assert model.recipe.numbers == recipe.numbers == ("size",)


def test_a_state_folder_keeps_to_its_items(tmp_path):
    path, state, out = write_items(tmp_path)[0], tmp_path / "state", tmp_path / "labels.csv"
    with annotating(state, path, ["low", "mid", "high", "top", "best"], id="id", question="How?"):
        assert "no labels to export yet" in told("--state", state, "--export", out, code=1)
    assert not out.exists()
    assert "created with --grades [" in told(path, "--grades", "1,2", "--state", state, code=1)
    said_of = "created without --delimiter, so ';' cannot"
    assert said_of in told("--delimiter", ";", "--state", state, code=1)
    assert "without --drop" in told(path, "--drop", "age", "--state", state, code=1)
    assert "with --question 'How?'" in told("--question", "Which?", "--state", state, code=1)
    path.write_text(path.read_text() + "x60,1,1,Ulm\n")
    assert "no longer, the file" in told("--state", state, code=1)


def test_answers_can_be_exported_whatever_becomes_of_the_items(tmp_path):
    """The only id is found without --id, and kept in the log; a formula is no formula."""
    path, ranks = write_items(tmp_path)
    path.write_text(path.read_text().replace("Graz", "=1+1"))
    state, out = tmp_path / "state", tmp_path / "labels.csv"
    with annotating(state, path) as caller:
        items = [f"x{asked['item']}" for asked in caller.answer_many(ranks, 20, "-ann")]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with annotating(state):  # other line ends are no other items
        pass
    for change, sentence in (
        (lambda: path.write_text("other\n1\n"), "no longer, the file"),
        (path.unlink, "is missing"),
    ):
        change()
        assert sentence in told("--state", state, code=1)
        told("--state", state, "--export", out, "--overwrite")
        assert "already exists" in told("--state", state, "--export", out, code=1)
        table = pl.read_csv(out)
        assert table["item"].to_list() == items
        assert set(table["town"]) == {"Ulm", "'=1+1"}
        assert set(table["annotator"]) == {"'-ann"}
        assert table["size"].dtype.is_float()
