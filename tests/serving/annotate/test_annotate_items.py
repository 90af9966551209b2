"""Items of files: what is shown, what is learned from, and which pictures may be seen."""

import shlex

import numpy as np
import polars as pl
import pytest
from at_work import PNG, annotating, told, write_items

from commands.tables import said
from commands.test_label_kinds import SURVEYS
from ordspan import load, train_files

ODD = pl.DataFrame(
    {
        "price": [1001.5 * i if i % 7 else None for i in range(1, 81)],
        "weight": [i / 8 for i in range(80)],
        "town": [None if i % 9 == 0 else f"town {i % 3}" for i in range(80)],
        "code": [f"{i:05d}" for i in range(80)],
    }
)
BANDS = ["under 25k", "25k to 50k", "50k or more"]


def test_features_are_those_that_train_finds(tmp_path):
    path, ranks = write_items(tmp_path)
    table = pl.read_csv(path).with_columns(grade=pl.Series(ranks))
    table.write_csv(tmp_path / "labelled.csv")
    trained = train_files(tmp_path / "labelled.csv", tmp_path / "m", label="grade", drop=["id"])
    with annotating(tmp_path / "state", path, id="id") as caller:
        assert caller.engine.model.recipe == trained.recipe
        np.testing.assert_array_equal(caller.engine.model.encoder.state, trained.encoder.state)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_items_are_learned_as_they_are_shown_and_guessed(tmp_path, ending):
    path = tmp_path / f"items.{ending}"
    getattr(ODD, {"jsonl": "write_ndjson"}.get(ending, f"write_{ending}"))(path)
    with annotating(tmp_path / "state", path, text=["code"]) as caller:
        assert caller.engine.model.recipe.numbers == ("price", "weight")
        ranks, n_guesses = [1 + number // 16 for number in range(80)], 0
        for _ in range(80):
            asked = caller.next()
            caller.answer(asked, ranks[asked["item"]])
            event, row = caller.engine.events()[-1], ODD.row(asked["item"])
            if asked["guess"]:  # by all items at once; the event has it by the values in the log
                assert asked["guess"] == [event.low, event.high, event.predicted]
                n_guesses += 1
            assert asked["name"] == row[3]  # the only column that names each row, so the heading
            cells = [(cell["kind"], cell["value"]) for cell in asked["cells"]]
            price = "" if row[0] is None else f"{row[0]:.0f}"
            assert cells[:2] == [("number", price), ("number", f"{row[1]:.4g}")]
            assert cells[2:] == [("text", row[2] or "")]
    assert n_guesses > 20


@pytest.mark.parametrize("ending", ["xlsx", "sav"])
def test_sentences_in_files_of_people_are_learned_and_exported_with_bands(tmp_path, ending):
    """From a spreadsheet or SPSS to answers in bands, and from these to a model."""
    words = ["so poor", "quite plain", "so rich"]
    notes = [f"number {i} of all, they live {words[i % 3]} now" for i in range(60)]
    table = pl.DataFrame({"note": notes, "place": ["a", "b"] * 30}).to_pandas()
    path, state, out = tmp_path / f"items.{ending}", tmp_path / "state", tmp_path / "labels.csv"
    if ending == "sav":
        pytest.importorskip("pyreadstat").write_sav(table, str(path))
    else:
        table.to_excel(path, index=False)
    with annotating(state, path, BANDS) as caller:
        caller.answer_many([1 + i % 3 for i in range(60)], 60)
        assert dict(caller.engine.model.recipe.sentences).keys() == {"note"}
        progress = caller.call("/api/progress").json()
        assert progress["error"][-1]["mae"] < progress["best_constant"]
    command = told("--state", state, "--export", out).splitlines()[-1]
    labels = pl.read_csv(out, infer_schema=False).select("lower", "upper")
    assert set(labels.rows()) == {(None, "25k"), ("25k", "50k"), ("50k", None)}
    said(*shlex.split(command)[1:-1], tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == BANDS


@pytest.mark.parametrize("name", [*SURVEYS, "amazonReviewSnippets", "tweets"])
def test_surveys_and_sentences_as_people_have_them_can_be_annotated(name, data_dir, tmp_path):
    path = data_dir / "fivethirtyeight_surveys" / f"{name}.csv"
    if name not in SURVEYS:
        text = (data_dir / "vader_raters" / f"{name}_GroundTruth.txt").read_bytes()
        lines = text.decode("utf-8-sig", errors="replace").splitlines()
        path = tmp_path / "sentences.csv"
        pl.DataFrame({"text": [line.split("\t")[2] for line in lines]}).write_csv(path)
    with annotating(tmp_path / "state", path, BANDS) as caller:
        n_items = len(caller.session.items)
        caller.answer_many([1 + item % 3 for item in range(n_items)], 40)
        progress = caller.call("/api/progress").json()
        assert (progress["answers"], progress["items"]) == (40, n_items)
    export = told("--state", tmp_path / "state", "--export", tmp_path / "labels.csv")
    said(*shlex.split(export.splitlines()[-1])[1:])


def test_columns_can_be_shown_and_not_learned_or_hidden(tmp_path):
    options = {"id": "id", "drop": ["age"], "hide": ["town"]}
    with annotating(tmp_path / "state", write_items(tmp_path)[0], **options) as caller:
        asked = caller.next()
        assert asked["name"] == f"x{asked['item']}"
        assert [cell["name"] for cell in asked["cells"]] == ["size", "age"]
        assert caller.engine.model.recipe.columns == ("size",)


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


def picture(caller, item, cell):
    return caller.call(f"/api/image?item={item}&cell={cell}")


def test_pictures_are_shown_by_numbers_and_not_learned_from(pictures, tmp_path):
    path = with_pictures(pictures, "a.png", "", "inside.png", "./fake.png")
    with annotating(tmp_path / "state", path, hide=["note"]) as caller:
        for number in (0, 2):
            shown = picture(caller, number, 0)
            assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
            assert shown.headers["x-content-type-options"] == "nosniff"
        for numbers in ((1, 0), (0, 1), (0, -1), (-1, 0), (4, 0), ("a.png", 0), ("9" * 5000, 0)):
            assert picture(caller, *numbers).status_code == 404
        assert caller.call("/api/image?path=a.png").status_code == 422
        (pictures / "a.png").unlink()
        (pictures / "a.png").symlink_to(pictures.parent / "secret.png")
        assert picture(caller, 0, 0).status_code == 404  # it has become a link
        assert [cell["kind"] for cell in caller.next()["cells"]] == ["image"]
        for asked in caller.answer_many([2] * 4, 4):
            assert (asked["asked_by"], asked["guess"]) == ("random", None)
        assert caller.engine.model.recipe.numbers == caller.engine.model.recipe.hashed == ()


OUTSIDE = ["../secret.png", "link.png", "up/secret.png", "/etc/x.png", "a/../../secret.png"]
OUTSIDE += ["../items-of-others/a.png", "missing.png"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_picture_outside_the_folder_is_refused_before_anything_starts(pictures, name):
    path, state = with_pictures(pictures, "a.png", name), pictures / "state"
    output = told(path, "--grades", "1..5", "--state", state, code=1)
    assert f"row 2: the image '{name}' in column 'picture' is not a file in the folder" in output
    assert "--hide picture" in output
    assert not state.exists()


@pytest.mark.parametrize("name", ["a.svg", "https://example.org/a.png", "a.png.txt", "no picture"])
def test_other_columns_are_text(pictures, name, tmp_path):
    with annotating(tmp_path / "state", with_pictures(pictures, "a.png", name)) as caller:
        assert caller.next()["cells"][0]["kind"] == "text"
        assert picture(caller, 0, 0).status_code == 404
