"""Numbers that a request sends as strings: read as in the training file, unless two are meant."""

from ordspan.modelfile import to_bytes
from ordspan.serving.engine import Lesson
from serving.served import ROW, opened, serving, standing

TWO_MEANINGS = {"price": ["1.234", "0.234", "-12.500 €", "1.234e3"], "size": ["1,234", "$ 1,234"]}
ONE_MEANING = {
    "price": {"1.234.567": 1234567, "1.234,0": 1234, "1,234": 1.234, "12": 12},
    "size": {"1.234": 1.234, "1,234.5": 1234.5, "0.5": 0.5},
}


def test_strings_that_may_be_two_numbers_are_refused(tmp_path):
    with serving(tmp_path, "mixed") as client:
        for column, cells in TWO_MEANINGS.items():
            for cell in cells:
                row = ROW | {column: cell}
                tensors = [
                    {"name": n, "datatype": "BYTES", "shape": [1], "data": [v]}
                    for n, v in row.items()
                ]
                bodies = {
                    "/predict": row,
                    "/learn": [ROW | {"label": "mid"}, row | {"label": "mid"}],
                    "/v2/models/ordspan/infer": {"inputs": tensors},
                }
                before = standing(client)
                for path, body in bodies.items():
                    refused = client.post(path, json=body)
                    assert refused.status_code == 422
                    assert f"column '{column}' holds '{cell}', whose" in refused.text
                assert standing(client) == before
        for column, numbers in ONE_MEANING.items():
            for cell, number in numbers.items():
                told = client.post("/predict", json=[ROW | {column: x} for x in (cell, number)])
                assert told.json()[0] == told.json()[1]


def test_a_log_with_strings_that_are_refused_today_is_replayed(tmp_path):
    engine = opened(tmp_path, "mixed")
    values = [(ROW | {"price": "1.234"})[name] for name in engine.model.recipe.columns]
    engine.learn([Lesson(values, 2, 2)])
    content = to_bytes(engine.model)
    engine.close()
    (tmp_path / "snapshot.ordspan").unlink()
    with serving(tmp_path, None) as client:
        assert client.get("/model").content == content


def test_a_model_of_decimal_commas_says_so(tmp_path):
    with serving(tmp_path, "mixed") as client:
        refused = client.post("/predict", json=[ROW, ROW | {"price": "120.5"}])
        assert (refused.status_code, refused.json()["detail"]) == (
            422,
            "the request, record 2: column 'price' holds '120.5', not a number with a decimal "
            "comma as in the model's training file; send a JSON number",
        )
