"""Items of files: what is shown, what is learned from, and which pictures may be seen."""

import shlex

import numpy as np
import polars as pl
import pytest
from at_work import PNG, Caller, begin, read, write_items

from ordspan import load
from ordspan.commands.train import TrainJob, train
from ordspan.serving.annotate.items import can_learn
from ordspan.serving.engine import untrained
from ordspan.serving.records import RecordReader
from tables import ask

ODD = pl.DataFrame(
    {
        "price": [1001.5 * i if i % 7 else None for i in range(1, 41)],
        "weight": [i / 8 for i in range(40)],
        "town": [None if i % 9 == 0 else f"town {i % 3}" for i in range(40)],
        "code": [f"{i:05d}" for i in range(40)],
    }
)


def test_features_are_those_that_train_finds(tmp_path):
    path, ranks = write_items(tmp_path)
    items = read(path, id="id")
    table = pl.read_csv(path).with_columns(grade=pl.Series(ranks))
    table.write_csv(tmp_path / "labelled.csv")
    files = [str(tmp_path / "labelled.csv")]
    train(TrainJob(files, tmp_path / "model", label="grade", drop=["id"]))
    model = load(tmp_path / "model")
    assert items.encoder.recipe == model.recipe
    np.testing.assert_array_equal(items.encoder.state, model.encoder.state)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_log_gives_the_features_that_items_are_predicted_by(tmp_path, ending):
    path = tmp_path / f"items.{ending}"
    getattr(ODD, {"jsonl": "write_ndjson"}.get(ending, f"write_{ending}"))(path)
    items = read(path, text=["code"])
    reader = RecordReader(untrained(items.encoder, np.array([1, 2])))
    all_at_once = items.encoder.features(items.X.copy(), items.words)
    again = reader.arrays([items.values(i) for i in range(len(items))])
    np.testing.assert_array_equal(items.encoder.features(*again), all_at_once)
    assert items.encoder.recipe.numbers == ("price", "weight")
    assert items.values(1)[0] == 2003.0
    assert [cell["value"] for cell in items.cells(1)] == ["2003", "0.125", "town 1", "00001"]
    assert [cell["kind"] for cell in items.cells(1)] == ["number", "number", "text", "text"]
    assert items.cells(6)[0]["value"] == ""
    assert items.name(1) == "00001"  # the only column that names each row


@pytest.mark.parametrize("ending", ["xlsx", "sav"])
def test_sentences_in_files_of_people_are_learned_and_exported_with_bands(tmp_path, ending):
    """From a spreadsheet or SPSS to answers in bands, and from these to a model."""
    grades = ["under 25k", "25k to 50k", "50k or more"]
    words = ["so poor", "quite plain", "so rich"]
    notes = [f"number {i} of all, they live {words[i % 3]} now" for i in range(60)]
    table = pl.DataFrame({"note": notes, "place": ["a", "b"] * 30})
    path = tmp_path / f"items.{ending}"
    if ending == "sav":
        pytest.importorskip("pyreadstat").write_sav(table.to_pandas(), str(path))
    else:
        table.to_pandas().to_excel(path, index=False)
    session = begin(tmp_path / "state", path, grades)
    Caller(session).answer_many([1 + i % 3 for i in range(60)], 60)
    assert dict(session.items.encoder.recipe.sentences).keys() == {"note"}
    assert session.history.beats_constant(60)
    session.engine.close()
    export = ask("annotate", "--state", tmp_path / "state", "--export", tmp_path / "labels.csv")
    labels = pl.read_csv(tmp_path / "labels.csv", infer_schema=False)
    ends = {(None, "25k"), ("25k", "50k"), ("50k", None)}
    assert set(labels.select("lower", "upper").rows()) == ends
    words = shlex.split(export.output.splitlines()[-1])[1:-1]
    trained = ask(*words, tmp_path / "model")
    assert trained.exit_code == 0, trained.output
    assert load(tmp_path / "model").classes_.tolist() == grades


SURVEYS = ["comma-survey", "flying-etiquette", "food-world-cup-data", "nonvoters_data", "StarWars"]
SURVEYS += ["sleeping-alone-data", "steak-risk-survey", "thanksgiving-2015-poll-data"]
SURVEYS += ["weather-check"]


@pytest.mark.parametrize("name", [*SURVEYS, "amazonReviewSnippets", "tweets"])
def test_surveys_and_sentences_as_people_have_them_can_be_annotated(name, data_dir, tmp_path):
    path = data_dir / "fivethirtyeight_surveys" / f"{name}.csv"
    if name not in SURVEYS:
        text = (data_dir / "vader_raters" / f"{name}_GroundTruth.txt").read_bytes()
        lines = text.decode("utf-8-sig", errors="replace").splitlines()
        path = tmp_path / "sentences.csv"
        pl.DataFrame({"text": [line.split("\t")[2] for line in lines]}).write_csv(path)
    session = begin(tmp_path / "state", path, ["under 25k", "25k to 50k", "50k or more"])
    caller = Caller(session)
    caller.answer_many([1 + item % 3 for item in range(len(session.items))], 40)
    told = caller.call("/api/progress").json()
    assert (told["answers"], told["items"]) == (40, len(session.items))
    session.engine.close()
    words = ("annotate", "--state", tmp_path / "state", "--export", tmp_path / "labels.csv")
    export = ask(*words, env={"COLUMNS": "10000"})
    assert ask(*shlex.split(export.output.splitlines()[-1])[1:]).exit_code == 0


def test_columns_can_be_shown_and_not_learned_or_hidden(tmp_path):
    path, _ = write_items(tmp_path)
    items = read(path, id="id", drop=["age"], hide=["town"])
    assert [cell["name"] for cell in items.cells(0)] == ["size", "age"]
    assert items.encoder.recipe.columns == ("size",)
    assert items.name(3) == items.key(3) == "x3"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("items.csv", "id,size\na,1\na,2\n", "row 1: the id 'a' is empty or not unique"),
        ("items.csv", "id,size\na,1\n,2\n", "row 2: the id '' is empty or not unique"),
        ("items.csv", "id,size\n", "a header but no rows"),
        ("items.svm", "1 1:2\n", "no columns to show"),
        ("missing.csv", None, "no such file"),
        ("-", None, "not a pipe"),
    ],
)
def test_items_are_rows_of_a_file_with_an_id_of_their_own(tmp_path, name, content, told):
    if content:
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=told):
        read(name if name == "-" else tmp_path / name, id="id")


@pytest.fixture
def pictures(tmp_path):
    """A folder of items beside a secret that must not be seen."""
    (tmp_path / "secret.png").write_bytes(PNG)
    folder = tmp_path / "items"
    folder.mkdir()
    (folder / "a.png").write_bytes(PNG)
    (folder / "fake.png").write_bytes(b"<svg onload='x()'/>")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "inside.png").symlink_to(folder / "a.png")
    (folder / "up").symlink_to(tmp_path)
    (tmp_path / "items-of-others").mkdir()
    (tmp_path / "items-of-others" / "a.png").write_bytes(PNG)
    return folder


def with_pictures(folder, *names):
    path = folder / "items.csv"
    path.write_text("picture,note\n" + "".join(f"{name},n{i}\n" for i, name in enumerate(names)))
    return path


def test_pictures_are_shown_and_not_learned_from(pictures):
    items = read(with_pictures(pictures, "a.png", "", "inside.png", "./fake.png"), hide=["note"])
    assert not can_learn(items.encoder.recipe)
    assert [cell["kind"] for cell in items.cells(0)] == ["image"]
    assert items.image(0, 0) == items.image(2, 0) == (PNG, "image/png")
    nothing = [(1, 0), (0, 1), (0, -1), (-1, 0), (4, 0), (10**9, 10**9)]
    assert [items.image(*place) for place in nothing] == [None] * len(nothing)


OUTSIDE = ["../secret.png", "link.png", "up/secret.png", "/etc/x.png", "a/../../secret.png"]
OUTSIDE += ["../items-of-others/a.png", "missing.png"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_picture_outside_the_folder_is_refused_before_anything_starts(pictures, name):
    with pytest.raises(ValueError, match=r"row 2: the image .* is not a file in the folder"):
        read(with_pictures(pictures, "a.png", name))


def test_a_picture_that_becomes_a_link_is_not_followed(pictures):
    items = read(with_pictures(pictures, "a.png"))
    (pictures / "a.png").unlink()
    (pictures / "a.png").symlink_to(pictures.parent / "secret.png")
    assert items.image(0, 0) is None


@pytest.mark.parametrize("name", ["a.svg", "https://example.org/a.png", "a.png.txt", "no picture"])
def test_other_columns_are_text(pictures, name):
    items = read(with_pictures(pictures, "a.png", name))
    assert items.cells(0)[0]["kind"] == "text"
    assert items.image(0, 0) is None
