"""Records of a request: read as files are, and refused in the same words."""

import json
import re

import polars as pl
import pytest

from ordspan import load
from serving.served import ROW, empty, learn, model_file, model_of, serving, standing

LABELS = {
    (3, 3): ["3", " 3.0 ", "3,0", 3, 3.0, [3, 3], "3 to 3"],
    (2, 4): ["2-4", "2..4", "2 to 4", "between 2 and 4", "[2,4]", "(1;5)", [2, 4], ["2", "4.0"]],
    (2, 3): ["2 or 3", "2/3", "[2,4)"],
    (4, 5): [">=4", "4+", "at least 4", ">3", "4 or more", "[4,]", [4, None], ["4", "inf"]],
    (1, 2): ["<=2", "at most 2", "<3", "2 and below", "(,2]", [None, 2], ["NA", "2"]],
}
GOOD = {"x0": 1.0, "x1": 2, "x2": -3.5, "label": 2}


def test_every_form_of_label_is_read_as_in_files(tmp_path):
    """As one label, as a pair, and as two ends of which one may be missing."""
    labels = [({"lower": 4}, (4, 5)), ({"upper": 2.0}, (1, 2))]
    for ends, some in LABELS.items():
        labels += [({"label": label}, ends) for label in some]
        pairs = [label for label in some if isinstance(label, list)]
        labels += [({"lower": lower, "upper": upper}, ends) for lower, upper in pairs]
    with serving(tmp_path, empty()) as client:
        learn(client, [{"a": 1, "b": 2} | label for label, _ in labels])
        learned = [(event.lower, event.upper) for event in client.engine.events()]
    assert learned == [ends for _, ends in labels]


BAD_BODIES = {
    "not JSON": (b"size=1", 400, "byte 0"),
    "nothing": (b"", 400, "cannot be read"),
    "not UTF-8": (b'{"label": "\xff"}', 400, "utf-8"),
    "half a surrogate": (b'{"x0": "\\ud800"}', 400, "cannot be read"),
    "NaN": (json.dumps(GOOD | {"x0": float("nan")}).encode(), 400, "null for missing values"),
    "infinity": (json.dumps(GOOD).replace("1.0", "1e999").encode(), 422, "out of range"),
    "long number": (json.dumps(GOOD).replace("1.0", "9" * 5000).encode(), 422, "'x0': Number out"),
    "deep": (b"[" * 100_000 + b"]" * 100_000, 422, "record 1: Expected `object`, got `array`"),
    "a name twice": (json.dumps([GOOD]).encode().replace(b"1.0", b'1.0, "x0" :2'), 400, "twice"),
    "a name twice, escaped": (json.dumps(GOOD).encode()[:-1] + b', "\\u00780": 2}', 400, "twice"),
    "UTF-16": (json.dumps(GOOD).encode("utf-16"), 400, "cannot be read"),
    "empty list": (b"[]", 422, "empty list; send at least one"),
    "a word": (b'"x0"', 422, "Expected `object | array`, got `str`"),
    "a list of lists": (json.dumps([GOOD, [1]]).encode(), 422, "record 2: Expected `object`"),
}
BAD_RECORDS = {
    "missing column": ({"x1": ...}, "Object missing required field `x1`; see /docs"),
    "renamed column": ({"x1": ..., "x1 ": 1}, "Object contains unknown field `x1 `"),
    "unknown column": ({"x9": 1}, "Object contains unknown field `x9`; see /docs"),
    "a word": ({"x1": "seven"}, "column 'x1': Expected `float | null`, got `str`"),
    "number as string": ({"x1": "7"}, "column 'x1': Expected `float | null`, got `str`"),
    "truth": ({"x1": True}, "column 'x1': Expected `float | null`, got `bool`"),
    "nested list": ({"x1": [1]}, "column 'x1': Expected `float | null`, got `array`"),
    "nested object": ({"x1": {"a": [1] * 999}}, "column 'x1': Expected `float | null`, got `obj"),
    "too large": ({"x1": 1e91}, "column 'x1' holds 1e+91, which is too large"),
    "4,000 digits": ({"x1": int("9" * 4000)}, "column 'x1': Number out of range"),
    "unknown grade": ({"label": 9}, "grade '9' is not among the model's [1, 2, 3, 4]; correct it"),
    "grade of 4,000 digits": ({"label": int("9" * 4000)}, "(4,000 characters) is not among"),
    "half a grade": ({"label": 2.5}, "grade '2.5' is not among"),
    "truth as grade": ({"label": True}, "got `bool`"),
    "empty label": ({"label": None}, "the label is empty"),
    "empty list": ({"label": [None, "NA"]}, "the label is empty"),
    "empty columns": ({"label": ..., "lower": None, "upper": ""}, "the label is empty"),
    "two names": ({"grade": None}, "give 'label' or 'grade', not both"),
    "range upside down": ({"label": "4-2"}, "lower end of '4-2' is above its upper end; swap"),
    "list upside down": ({"label": [4, 2]}, "lower 4 is above upper 2; swap"),
    "columns upside down": ({"label": ..., "lower": 4, "upper": "2"}, "lower 4 is above upper '2'"),
    "unknown end": ({"label": [0, 2]}, "grade '0' is not among"),
    "list of three": ({"label": [1, 2, 3]}, "column 'label': Expected `array` of length 2"),
    "object as label": ({"label": {"lower": 1}}, "got `object`"),
    "list in a list": ({"label": [[1], 2]}, "got `array`"),
    "no label": ({"label": ...}, "no label; give 'label', or 'lower', 'upper' or both"),
    "two labels": ({"lower": 1}, "give either 'label', or"),
    "key of number": ({"key": 7}, "column 'key': Expected `str | null`, got `int`"),
    "empty key": ({"key": ""}, "column 'key': Expected `str` of length >= 1"),
    "long key": ({"key": "k" * 201}, "column 'key': Expected `str` of length <= 200"),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("state"), "numbers") as client:
        client.post("/learn", json=GOOD)
        yield client


def refusal(client, path, body, status=422):
    """The sentence of a request that must leave everything as it was."""
    before = standing(client)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, standing(client)) == (status, before)
    return answer.json()["detail"]


@pytest.mark.parametrize("path", ["/learn", "/predict"])
@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused_with_a_sentence(name, path, client):
    body, status, words = BAD_BODIES[name]
    assert words in refusal(client, path, body, status)


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_bad_record_is_refused_by_its_number_and_no_other_is_learned(name, client):
    change, words = BAD_RECORDS[name]
    bad = {column: cell for column, cell in (GOOD | change).items() if cell is not ...}
    said = refusal(client, "/learn", [GOOD, bad, GOOD])
    assert said.startswith("the request, record 2: ")
    assert words in said
    if not change.keys() & {"label", "grade", "lower", "key"}:
        del bad["label"]
        assert words in refusal(client, "/predict", bad)


@pytest.mark.parametrize(
    "grades", [[1, 2, 3, 4, 5], [0.5, 1, 1.5], ["poor", "quite fair", "good"], ["no", "yes"]]
)
def test_a_label_that_is_not_read_gets_ranges_that_are(grades, tmp_path):
    with serving(tmp_path, empty(grades=grades)) as client:
        body = {"a": 1, "b": 2, "label": f"{grades[0]} perhaps {grades[1]}"}
        said = refusal(client, "/learn", body)
        examples = re.search("write a range as (.*), or train a model", said)[1]
        ranges = [json.loads(example) for example in re.split(', (?=")| or ', examples)]
        assert len(ranges) == 3
        learn(client, [body | {"label": label} for label in ranges])
        ends = [(event.lower, event.upper) for event in client.engine.events()]
        assert ends[0] == ends[2]
        assert ends[0][0] == ends[1][0] == ends[0][1] - 1


def test_a_row_is_worth_the_same_beside_any_other(tmp_path):
    """In a list, alone, and when the log is replayed: cells are read one by one."""
    model = load(model_file("mixed"))
    cells = [1.5, 1234.5, None, -3, 1e22, 12345678901234567890]
    rows = [ROW | {"price": price, "town": town} for price in cells for town in ("Ulm", 5, None)]
    with serving(tmp_path, "mixed") as client:
        alone = [client.post("/predict", json=row).json()["score"] for row in rows]
        told = client.post("/predict", json=rows).json()
        assert [row["score"] for row in told] == pytest.approx(alone, rel=1e-12)
        assert model.latent(pl.DataFrame([ROW | {"price": 1.5}]))[0] == pytest.approx(alone[0])
        for row in rows:
            learn(client, row | {"label": "mid"})
        content = client.get("/model").content
    (tmp_path / "snapshot.ordspan").unlink()
    assert model_of(tmp_path) == content


def test_features_of_svmlight_rows_have_one_name_each_and_are_numbers(tmp_path):
    names = ("0", "4", "01", "1.0", "x", "", "-1", "٣", "9" * 30)
    wrong = [({name: 1, "1": 1}, "") for name in names]
    wrong += [({"2": cell}, "Expected `float`") for cell in ("x", None, [1], True)]
    wrong += [({"2": 1e91}, "feature 2"), ({"4": 1}, "Expected `int` <= 3")]
    with serving(tmp_path, "svmlight") as client:
        for row, words in wrong:
            assert words in refusal(client, "/learn", {"features": row, "label": 1})
