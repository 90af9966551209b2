"""Answers out and in: what train takes, and what Label Studio and Potato write."""

import json
import shlex

import polars as pl
import pytest
from at_work import Caller, begin, read, write_items
from tables import ask

from ordspan import load
from ordspan.files.opening import FileOptions
from ordspan.serving.annotate.history import History
from ordspan.serving.annotate.importing import read_answers
from ordspan.serving.annotate.labels import export_labels, train_command
from ordspan.serving.annotate.matching import PointScale
from ordspan.serving.annotate.settings import opened

FIRST = ["item", "lower", "upper", "annotator", "seconds", "asked_by"]


def export(session, out):
    said = session.history.replies.values()
    return export_labels(str(out), session.items, session.settings.grades, said, [])


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
    item = caller.next()["item"]
    caller.call("/api/skip", {"key": "s", "annotator": "ann", "item": item})
    caller.answer(caller.next(), 1)
    caller.call("/api/undo", {"key": "u", "annotator": "ann"})
    yield session
    session.engine.close()


def test_every_answer_that_holds_is_a_row(answered, tmp_path):
    assert export(answered, tmp_path / "labels.csv") == 130
    table = pl.read_csv(tmp_path / "labels.csv")
    assert table.columns == [*FIRST, "size", "age"]
    said = [one for one in answered.history.replies.values() if one.event.kind == "learn"]
    items = pl.read_csv(answered.items.path)
    for row, one in zip(table.iter_rows(named=True), said, strict=True):
        item = items.row(one.extra.item, named=True)
        assert (row["lower"], row["upper"]) == one.ends
        assert (row["annotator"], row["seconds"]) == (one.extra.annotator, 2.0)
        assert row["asked_by"] == one.extra.asked_by
        assert (row["item"], row["size"], row["age"]) == (item["id"], item["size"], item["age"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_train_takes_it_as_it_is_and_learns_what_the_page_learned(answered, tmp_path, ending):
    out = tmp_path / f"labels.{ending}"
    export(answered, out)
    words = ["train", out, "--lower", "lower", "--upper", "upper", "--model", tmp_path / "m"]
    answer = ask(*words, "--shuffle-buffer", 0)
    assert answer.exit_code == 0, answer.output
    for name in ("item", "annotator", "seconds", "asked_by"):
        assert f"left out {name!r}: ordspan annotate added it next to the answer" in answer.output
    model = load(tmp_path / "m")
    assert model.recipe.columns == answered.items.recipe.columns
    assert model.classes_.tolist() == answered.settings.grades


def test_the_columns_beside_an_answer_can_still_be_asked_for(answered, tmp_path):
    export(answered, tmp_path / "labels.csv")
    words = ["--lower", "lower", "--upper", "upper", "--features", "size,seconds"]
    answer = ask("train", tmp_path / "labels.csv", *words, "--model", tmp_path / "m")
    assert answer.exit_code == 0, answer.output
    assert load(tmp_path / "m").recipe.columns == ("size", "seconds")


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
    command = train_command(str(out), grades, session.items, text)
    assert command.startswith("ordspan train ")
    words = shlex.split(command)[1:-1]
    assert ask(*words, tmp_path / "m").exit_code == 0
    model = load(tmp_path / "m")
    assert model.classes_.tolist() == grades
    names = {"item of the item": "item"}
    assert {names.get(n, n) for n in model.recipe.texts} == set(session.items.recipe.texts)
    assert model.recipe.numbers == session.items.recipe.numbers == ("size",)
    session.engine.close()


def test_columns_of_the_same_name_are_told_apart(tmp_path):
    rows = "".join(f"{i % 5},{i % 7}\n" for i in range(30))
    (tmp_path / "items.csv").write_text("lower,item\n" + rows)
    session = begin(tmp_path / "state", tmp_path / "items.csv")
    Caller(session).answer_many([1 + i % 5 for i in range(30)], 5)
    export(session, tmp_path / "labels.csv")
    names = pl.read_csv(tmp_path / "labels.csv").columns
    assert names == [*FIRST, "lower of the item", "item of the item"]
    session.engine.close()


def test_without_an_answer_no_file_is_written(tmp_path):
    path, _ = write_items(tmp_path)
    items = read(path)
    with pytest.raises(ValueError, match="no answers to export yet"):
        export_labels(
            str(tmp_path / "labels.csv"), items, [1, 2], History(1, 2).replies.values(), []
        )
    assert not (tmp_path / "labels.csv").exists()


# -- answers of other programs -------------------------------------------------------------------


def task(data, *ratings, cancelled=False, name="quality"):
    """A task as Label Studio exports it."""
    return {
        "id": 17,
        "data": data,
        "annotations": [
            {
                "id": 1001 + number,
                "completed_by": who,
                "result": [
                    {
                        "id": "Dx_aB91ISN",
                        "type": "rating",
                        "from_name": name,
                        "to_name": "text",
                        "origin": "manual",
                        "value": {"rating": rating},
                    }
                ],
                "was_cancelled": cancelled,
                "ground_truth": False,
                "lead_time": 4.288,
                "created_at": "2021-03-09T22:16:08.728353Z",
            }
            for number, (who, rating) in enumerate(ratings)
        ],
        "predictions": [{"result": [{"type": "rating", "value": {"rating": 1}}]}],
        "project": 83,
    }


@pytest.fixture
def session(tmp_path):
    path, _ = write_items(tmp_path)
    session = begin(tmp_path / "state", path, ["low", "mid", "high", "top", "best"], id="id")
    yield session
    session.engine.close()


def answers_in(session, content, folder, *, name="labels.json", schema=None):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    settings = session.settings
    return read_answers(path, session.items, settings.columns.id, settings.grades, schema)


def plain(answers):
    return [(a.item, a.annotator, a.lower, a.upper, a.seconds) for a in answers]


def test_label_studio_ratings_are_counted_from_the_lowest_grade(session, tmp_path):
    tasks = [
        task({"id": "x3", "text": "a"}, (10, 4), ({"id": 2, "email": "bob@example.org"}, 1)),
        task({"id": "x5"}, (10, 5), cancelled=True),
        {"id": 3, "data": {"id": "x6"}, "annotations": []},
    ]
    found = plain(answers_in(session, tasks, tmp_path))
    assert found == [(3, "10", 4, 4, 4.288), (3, "bob@example.org", 1, 1, 4.288)]


def test_tasks_without_an_id_are_found_by_their_data(tmp_path):
    (tmp_path / "items.csv").write_text("text,size\ngood,1.0\ngood,2\nbad,2\n")
    session = begin(tmp_path / "state", tmp_path / "items.csv")
    found = answers_in(session, [task({"text": " bad ", "size": 2, "more": 1}, (1, 2))], tmp_path)
    assert plain(found) == [(2, "1", 2, 2, 4.288)]
    for data, told in [
        ({"text": "good"}, "2 items have text 'good'"),
        ({"text": "odd"}, "no item has text 'odd'"),
        ({"other": 1}, "has no column of the items"),
    ]:
        tasks = [task({"text": "bad"}, (1, 2)), task(data, (1, 2))]
        with pytest.raises(ValueError, match=rf"record 2, annotation 1: .*{told}"):
            answers_in(session, tasks, tmp_path)
    session.engine.close()


POTATO_1 = {
    "id": "x3",
    "displayed_text": "a",
    "label_annotations": {"quality": {"scale_2": "2"}},
    "span_annotations": {},
    "behavioral_data": {"time_string": "Time spent: 0d 0h 1m 2s "},
}
POTATO_2 = {
    "instance_id": "x3",
    "user_id": "ann",
    "labels": {"quality": {"range_low": "2", "range_high": "4"}},
    "spans": {},
    "links": {},
}
USER = {
    "user_id": "ann",
    "instance_id_ordering": ["x3"],
    "instance_id_to_label_to_value": {
        "x3": [
            [{"schema": "quality", "name": "range_low"}, "2"],
            [{"schema": "quality", "name": "range_high"}, "4"],
        ],
        "x4": [[{"schema": "quality", "name": "slider"}, "5"]],
        "x5": {"quality": {"mid": "true"}},
        "x6": [],
    },
}


def test_potato_of_the_first_version(session, tmp_path):
    lines = f"{json.dumps(POTATO_1)}\n\n{json.dumps(POTATO_1 | {'id': 'x4'})}\n"
    found = answers_in(session, lines, tmp_path, name="ann@example.org/annotated_instances.jsonl")
    assert plain(found) == [(i, "ann@example.org", 2, 2, 62.0) for i in (3, 4)]


def test_potato_exported_and_as_it_keeps_its_state(session, tmp_path):
    found = answers_in(session, json.dumps(POTATO_2) + "\n", tmp_path, name="annotations.jsonl")
    assert plain(found) == [(3, "ann", 2, 4, None)]
    for value in ("mid", 2):  # of a question that holds nothing else
        (found,) = answers_in(session, POTATO_2 | {"labels": {"quality": value}}, tmp_path)
        assert (found.lower, found.upper) == (2, 2)
    found = answers_in(session, USER, tmp_path, name="user_state.json")
    assert [one[:4] for one in plain(found)] == [
        (3, "ann", 2, 4),
        (4, "ann", 5, 5),
        (5, "ann", 2, 2),
    ]


@pytest.mark.parametrize(
    ("grades", "given", "ends"),
    [
        ([0, 1, 2], {"range_low": "0", "range_high": "1"}, (1, 2)),  # a slider shows the grades
        (["a", "b", "c"], {"range_low": "2", "range_high": "3"}, (2, 3)),
        ([10, 20, 30], {"slider": "20"}, (2, 2)),
        ([10, 20, 30], {"scale_3": "3"}, (3, 3)),  # a scale counts from 1
        ([1, 2, 3], {"3": "3"}, (3, 3)),
        (["a", "b", "c"], {"3": "3"}, (3, 3)),
        (["a", "b", "c"], {"b": True, "c": False}, (2, 2)),
        ([1, 2, 3], {"bad_text": "0"}, None),
        ([1, 2, 3], {}, None),
    ],
)
def test_points_and_values_become_ranks(grades, given, ends):
    assert PointScale(grades).ends(given) == ends


@pytest.mark.parametrize(
    ("grades", "given", "told"),
    [
        ([0, 1, 2], {"1": "1"}, "ambiguous: a grade, or a point"),
        ([1, 2, 3], {"scale_4": "4"}, "'4' is not a point from 1 to 3"),
        ([1, 2, 3], {"scale_0": "0"}, "not a point"),
        ([1, 2, 3], {"range_low": "3", "range_high": "1"}, "lower end 3 is above 1"),
        ([0, 50], {"range_low": "25", "range_high": "75"}, "'25' is not among"),
        (["a", "b"], {"a": "true", "b": "true"}, "several grades are chosen"),
        (["a", "b"], {"d": "true"}, "not among"),
    ],
)
def test_what_is_no_grade_is_refused(grades, given, told):
    with pytest.raises(ValueError, match=told):
        PointScale(grades).ends(given)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([task({"id": "x3"}, (1, 6))], "record 1, annotation 1: '6' is not a point from 1 to 5"),
        ([task({"id": "y"}, (1, 2))], "record 1, annotation 1: no item has the id 'y'"),
        (POTATO_2 | {"instance_id": "y"}, "record 1: no item has the id 'y'"),
        ([1], "record 1: .*give the JSON of Label Studio"),
        ({"text": "a"}, "record 1: the record has no id"),
        (json.dumps(POTATO_2 | {"instance_id": "x1"}) + "\n{", "line 2: "),
        ([{"data": {}, "annotations": [{"result": 1}]}], "record 1: .*annotations"),
        (POTATO_2 | {"labels": {"a": {"low": "true"}, "b": {}}}, "several questions, a, b"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_place(session, tmp_path, content, told):
    with pytest.raises(ValueError, match=told):
        answers_in(session, content, tmp_path)


def test_one_of_several_questions_can_be_named(session, tmp_path):
    both = POTATO_2 | {"labels": {"a": {"low": "true"}, "b": {"high": "true"}}}
    (found,) = answers_in(session, both, tmp_path, schema="b")
    assert (found.lower, found.upper) == (3, 3)
    assert answers_in(session, both, tmp_path, schema="c") == []


def test_answers_that_are_read_twice_count_once(session, tmp_path):
    tasks = [task({"id": f"x{i}"}, (10, 1 + i % 5), (11, 3)) for i in range(20)]
    found = answers_in(session, tasks, tmp_path)
    assert session.import_answers(found) == 40
    assert session.import_answers(found) == 0
    told = session.progress()
    assert (told["answers"], told["items_answered"], told["error"]) == (40, 20, [])
    more = answers_in(session, [*tasks, task({"id": "x20"}, (10, 5))], tmp_path)
    assert session.import_answers(more) == 1
    session.engine.close()
    again = begin(tmp_path / "state")
    assert again.import_answers(more) == 0
    assert again.progress()["answers"] == 41
    assert {one.extra.asked_by for one in again.history.replies.values()} == {"import"}
    again.engine.close()


def test_two_answers_of_one_annotator_to_one_item_are_refused_together(session, tmp_path):
    tasks = [task({"id": "x1"}, (10, 1)), task({"id": "x2"}, (10, 1), (10, 2))]
    with pytest.raises(ValueError, match="record 2, annotation 2: 10 has two different answers"):
        session.import_answers(answers_in(session, tasks, tmp_path))
    assert session.engine.n_events == 0


def test_an_answer_that_was_given_here_is_not_taken_in_again(session, tmp_path):
    caller = Caller(session)
    asked = caller.next()
    caller.answer(asked, 2)
    tasks = [task({"id": asked["name"]}, ("ann", 2))]
    assert session.import_answers(answers_in(session, tasks, tmp_path)) == 0
    tasks = [task({"id": asked["name"]}, ("ann", 3))]
    with pytest.raises(ValueError, match="ann has two different answers"):
        session.import_answers(answers_in(session, tasks, tmp_path))
    assert session.engine.n_events == 1


def test_imported_answers_are_not_asked_again_and_not_taken_back(session, tmp_path):
    tasks = [task({"id": f"x{i}"}, ("ann", 1)) for i in range(59)]
    session.import_answers(answers_in(session, tasks, tmp_path))
    caller = Caller(session)
    assert caller.next()["item"] == 59
    assert caller.call("/api/undo", {"key": "u", "annotator": "ann"}).status_code == 404


def test_a_state_folder_keeps_to_its_items(tmp_path, session):
    path = session.items.path
    with pytest.raises(ValueError, match=r"created with .* as --grades"):
        begin(tmp_path / "state", path, [1, 2])
    columns, semicolons = session.settings.columns, FileOptions(delimiter=";")
    with pytest.raises(ValueError, match="created with nothing as --delimiter, not ';'"):
        opened(tmp_path / "state", None, None, columns, semicolons)
    with pytest.raises(ValueError, match="created with nothing as --drop"):
        begin(tmp_path / "state", path, None, drop=["age"])
    path.write_text(path.read_text() + "x60,1,1,Ulm\n")
    with pytest.raises(ValueError, match="has changed since"):
        opened(tmp_path / "state", None, None, type(columns)(), FileOptions())
