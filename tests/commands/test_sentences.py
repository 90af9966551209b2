"""Text columns of several words a cell: learned as words and pairs of words, everywhere alike."""

import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ordspan
from ordspan import TableEncoder
from serving.served import serving
from tables import check_resumes, read_rows, reviews, said, summary, write_table


def written(folder, table=None, name="a.csv"):
    return write_table((reviews() if table is None else table).to_arrow(), folder / name)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("sentences")
    said("train", written(path), "--label", "stars", "--model", path / "m")
    return path / "m"


def test_reviews_decided_by_a_word_are_learned_without_an_option(tmp_path, model):
    words = ["--label", "stars", "--model", tmp_path / "m"]
    trained = summary("train", model.with_name("a.csv"), *words)
    note, passes = [note for note in trained["notes"] if "sentences" in note]
    assert "in 10 passes" in passes
    assert note.startswith("sentences, learned as words and pairs of words: review; if each cell")
    assert (trained["features"], [*trained["left_out"]]) == (2**16, ["id"])
    new = reviews(300, seed=1)
    found = summary("evaluate", written(tmp_path, new), "--model", model)
    assert found["mae"] < 0.3 * found["best_constant"]["mae"]["value"]
    pairs = pl.DataFrame({"review": ["it was not bad at all", "it was not good at all"]})
    assert np.diff(ordspan.load(model).predict(pairs)) < 0


def test_the_words_that_weigh_most_have_names(tmp_path, model):
    rows = summary("info", model)["weights"]
    assert {"review: great", "review: awful"} == {row["feature"] for row in rows[:2]}
    assert {row["weight"] > 0 for row in rows if row["feature"] == "review: great"} == {True}
    assert "review: not good" in {row["feature"] for row in rows}
    assert summary("info", model)["columns"]["sentences"] == ["review"]
    assert re.search("hashed sentences of +review", said("info", model))
    page = tmp_path / "page.html"
    said("evaluate", written(tmp_path), "--model", model, "--html", page)
    shown = page.read_text()
    assert "great" in shown.split("What weighs most")[1]
    assert "great" not in shown.split("What weighs most")[0]


def test_words_are_the_same_in_every_format_and_in_python(tmp_path, model):
    new, loaded = reviews(50, seed=2), ordspan.load(model)
    scores = loaded.latent(new)
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        path, out = written(tmp_path, new, name), tmp_path / "out.csv"
        said("predict", path, "--model", model, "--out", out, "--overwrite")
        assert [float(row["score"]) for row in read_rows(out)] == scores.tolist()
    encoder = TableEncoder(drop=["id", "stars"]).fit(reviews())
    X = encoder.transform(new)
    np.testing.assert_allclose(X @ loaded.estimator.coef_, scores, rtol=1e-12)
    assert [*encoder.get_feature_names_out()] == loaded.recipe.feature_names()
    online = TableEncoder(drop=["id", "stars"]).partial_fit(reviews())
    assert (online.transform(new) != X).nnz == 0
    with serving(tmp_path / "state", loaded) as client:
        answer = client.post("/predict", json=new.select("review").to_dicts()).json()
    assert [row["score"] for row in answer] == scores.tolist()


def test_a_stopped_training_is_resumed_to_the_same_bytes(tmp_path, model):
    words = ["train", model.with_name("a.csv"), "--label", "stars", "--checkpoint-every", 100]
    check_resumes(tmp_path, *words, checkpoints=3)


def test_a_pipe_gives_the_model_of_a_file(tmp_path):
    text = written(tmp_path).read_text()
    words = ["--label", "stars", "--grades", "1..5", "--passes", "1", "--drop", "id"]
    said("train", tmp_path / "a.csv", *words, "--model", tmp_path / "file")
    said("train", "-", "--format", "csv", *words, "--model", tmp_path / "pipe", input=text)
    file, pipe = (ordspan.load(tmp_path / name) for name in ("file", "pipe"))
    np.testing.assert_array_equal(file.estimator.coef_, pipe.estimator.coef_)


def columns_of(folder, *words, **columns):
    table = reviews(300).drop("review").with_columns(**columns)
    path = written(folder, table)
    said("train", path, "--label", "stars", *words, "--model", folder / "m", "--overwrite")
    return summary("info", folder / "m")["columns"]


CYCLE = np.arange(300)


@pytest.mark.parametrize(
    "cells",
    [
        [f"Person {chr(97 + i % 26)}lfred Müller" for i in CYCLE],  # names
        [f"{i} Main Street, {10000 + i} Springfield" for i in CYCLE],  # addresses
        ["I strongly agree with this statement", "I do not agree with it at all"] * 150,
        [f"token{i % 290}" for i in CYCLE],
    ],
)
def test_names_addresses_and_repeated_answers_stay_categories(tmp_path, cells):
    found = columns_of(tmp_path, "--features", "cell", cell=pl.Series(cells))
    assert found["sentences"] == []
    assert [*found["words"], *found["hashed"]] == ["cell"]


def test_options_take_each_cell_as_one_category(tmp_path):
    cells = {"review": reviews(300)["review"]}
    assert columns_of(tmp_path, **cells)["sentences"] == ["review"]
    found = columns_of(tmp_path, "--features", "review", "--hash", "review", **cells)
    assert (found["sentences"], found["hashed"]) == ([], ["review"])
    some = pl.Series(reviews(300)["review"][:150].to_list() * 2)
    found = columns_of(tmp_path, "--text", "review", review=some)
    assert (found["sentences"], [*found["words"]]) == ([], ["review"])


def test_sentences_stand_beside_numbers_words_and_other_sentences(tmp_path):
    more = reviews(300, seed=9)["review"]
    blank = pl.Series([None if i % 5 == 0 else cell for i, cell in enumerate(more)])
    numbers, towns = np.arange(300) % 17 * 1.5, ["Ulm", "Bonn", "Graz"] * 100
    found = columns_of(
        tmp_path,
        review=reviews(300)["review"],
        reply=blank,
        size=pl.Series(numbers),
        town=pl.Series(towns),
    )
    assert (found["sentences"], found["numbers"]) == (["review", "reply"], ["size"])
    model = ordspan.load(tmp_path / "m")
    assert model.recipe.n_features == 1 + 3 + 2**16
    row = {"review": "great food", "reply": None, "size": None, "town": "Ulm"}
    other = row | {"review": "", "reply": "great food"}
    X = model.encoder.features(*model.encoder.rows([row, other]))
    assert X.has_canonical_format
    assert not set(X[[0]].indices[2:]) & set(X[[1]].indices[2:])  # by the column too


def test_characters_are_the_words_of_languages_without_spaces(tmp_path):
    rng, letters = np.random.default_rng(0), [chr(code) for code in range(0x4E00, 0x4E80)]
    cells = ["".join(rng.choice(letters, 12)) + "好坏"[i % 2] + "。" for i in range(400)]
    path = written(tmp_path, pl.DataFrame({"text": cells, "stars": [1, 2] * 200}))
    found = summary("train", path, "--label", "stars", "--model", tmp_path / "m")
    assert found["mae"][-1] < 0.3 * found["constant"]["mae"]


@pytest.mark.slow
@pytest.mark.skipif("ORDSPAN_DATA" not in os.environ, reason="needs the judges' sentences")
@pytest.mark.parametrize("name", ["amazonReviewSnippets", "tweets"])
def test_sentences_of_judges_are_graded_better_than_the_bar(tmp_path, name):
    bench = pytest.importorskip("bench_sentences")
    sentences = bench.read_judges(Path(os.environ["ORDSPAN_DATA"]) / "vader_raters", name)
    assert bench.errors(tmp_path, sentences, n_splits=1)[0] <= bench.SETS[name][1]
