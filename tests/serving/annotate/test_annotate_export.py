"""Answers are exported as a table that train takes."""

import shlex

import polars as pl
import pytest
from at_work import Caller, begin, write_items

from ordspan import load
from ordspan.serving.export import export_labels, train_command
from tables import ask

FIRST = ["item", "lower", "upper", "annotator", "seconds", "asked_by"]


def export(session, out):
    return export_labels(str(out), session.engine.folder, annotated=True)[0]


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """A session in which two people have answered, and one has skipped and taken back."""
    folder = tmp_path_factory.mktemp("answered")
    path, ranks = write_items(folder, n=120)
    session = begin(folder / "state", path, id="id", drop=["town"])
    caller = Caller(session)
    caller.answer_many(ranks, 100)
    for _ in range(30):
        asked = caller.next("bob, of Ulm")
        rank = ranks[asked["item"]]
        caller.answer(asked, max(1, rank - 1), min(5, rank + 1), "bob, of Ulm")
    caller.skip(caller.next()["item"], key="s")
    caller.answer(caller.next(), 1)
    caller.call("/api/undo", {"key": "u", "annotator": "ann"})
    yield session
    session.engine.close()


def test_every_answer_that_holds_is_a_row(answered, tmp_path):
    assert export(answered, tmp_path / "labels.csv") == 130
    table = pl.read_csv(tmp_path / "labels.csv")
    assert table.columns == [*FIRST, "size", "age"]
    said = [one for one in answered.history.replies.values() if one[0].kind == "learn"]
    items = pl.read_csv(answered.items.path)
    for row, (event, note) in zip(table.iter_rows(named=True), said, strict=True):
        item = items.row(note.item, named=True)
        assert (row["lower"], row["upper"]) == (event.lower, event.upper)
        assert (row["annotator"], row["seconds"]) == (note.annotator, 2.0)
        assert row["asked_by"] == note.asked_by
        assert (row["item"], row["size"], row["age"]) == (item["id"], item["size"], item["age"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_train_takes_it_as_it_is_and_learns_what_the_page_learned(answered, tmp_path, ending):
    out = tmp_path / f"labels.{ending}"
    export(answered, out)
    words = ["train", out, "--lower", "lower", "--upper", "upper", "--model", tmp_path / "m"]
    answer = ask(*words, "--no-shuffle")
    assert answer.exit_code == 0, answer.output
    names = "left out 'item', 'annotator', 'seconds', 'asked_by' (ordspan annotate added it"
    assert names in " ".join(answer.output.split())
    model = load(tmp_path / "m")
    assert model.recipe.columns == answered.items.encoder.recipe.columns
    assert model.classes_.tolist() == answered.grades


def test_other_files_with_such_columns_are_learned_from_as_ever(tmp_path):
    rows = "".join(f"{i % 3},{i % 3},{'ann' if i % 2 else 'bob'},{i % 7}\n" for i in range(60))
    (tmp_path / "a.csv").write_text("lower,upper,annotator,seconds\n" + rows)
    words = ["--lower", "lower", "--upper", "upper", "--model", tmp_path / "m"]
    assert ask("train", tmp_path / "a.csv", *words).exit_code == 0
    assert set(load(tmp_path / "m").recipe.columns) == {"annotator", "seconds"}


def test_the_printed_command_trains_named_grades(tmp_path):
    path, ranks = write_items(tmp_path)
    grades = ["very low", "low", "mid, or so", "high", "top"]
    codes = ["code,item", *(f"{i % 7},{i % 4}" for i in range(60))]
    rows = zip(path.read_text().split(), codes, strict=True)
    path.write_text("".join(f"{row},{code}\n" for row, code in rows))
    text = ["code", "item", "age"]  # of age all are different, so it is no feature
    session = begin(tmp_path / "state", path, grades, id="id", text=text)
    Caller(session).answer_many(ranks, 40)
    out = tmp_path / "labels.csv"
    export(session, out)
    assert pl.read_csv(out).columns == [*FIRST, "size", "town", "code", "item of the item"]
    command = train_command(str(out), session.engine.model, text)
    assert command.startswith("ordspan train ")
    words = shlex.split(command)[1:-1]
    assert ask(*words, tmp_path / "m").exit_code == 0
    model = load(tmp_path / "m")
    assert model.classes_.tolist() == grades
    names = {"item of the item": "item"}
    assert {names.get(n, n) for n in model.recipe.texts} == set(session.items.encoder.recipe.texts)
    assert model.recipe.numbers == session.items.encoder.recipe.numbers == ("size",)
    session.engine.close()


def test_a_state_folder_keeps_to_its_items(tmp_path):
    path, _ = write_items(tmp_path)
    session = begin(tmp_path / "state", path, ["low", "mid", "high", "top", "best"], id="id")
    with pytest.raises(ValueError, match="no labels to export yet"):
        export(session, tmp_path / "labels.csv")
    assert not (tmp_path / "labels.csv").exists()
    session.engine.close()
    with pytest.raises(ValueError, match=r"created with .* as --grades"):
        begin(tmp_path / "state", path, [1, 2])
    with pytest.raises(ValueError, match="created with 'nothing' as --delimiter, not ';'"):
        begin(tmp_path / "state", delimiter=";")
    with pytest.raises(ValueError, match="created with 'nothing' as --drop"):
        begin(tmp_path / "state", path, drop=["age"])
    path.write_text(path.read_text() + "x60,1,1,Ulm\n")
    with pytest.raises(ValueError, match="has changed since"):
        begin(tmp_path / "state")


def test_answers_can_be_exported_whatever_becomes_of_the_items(tmp_path):
    """The only id is found without --id, and kept in the log; a formula is no formula."""
    path, ranks = write_items(tmp_path)
    path.write_text(path.read_text().replace("Graz", "=1+1"))
    session = begin(tmp_path / "state", path)
    Caller(session).answer_many(ranks, 20, "-ann")
    items = [session.items.key(note.item) for _, note in session.history.replies.values()]
    assert items[0].startswith("x")
    session.engine.close()
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    begin(tmp_path / "state").engine.close()  # other line ends are no other items
    for change in (lambda: path.write_text("other\n1\n"), path.unlink):
        change()
        with pytest.raises(ValueError, match=r"has changed|is missing"):
            begin(tmp_path / "state")
        words = ("annotate", "--state", tmp_path / "state", "--export", tmp_path / "labels.csv")
        answer = ask(*words, "--overwrite")
        assert answer.exit_code == 0, answer.output
        assert "already exists" in ask(*words).output
        table = pl.read_csv(tmp_path / "labels.csv")
        assert table["item"].to_list() == items
        assert set(table["town"]) == {"Ulm", "'=1+1"}
        assert set(table["annotator"]) == {"'-ann"}
        assert table["size"].dtype.is_float()
