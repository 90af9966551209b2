"""The Open Inference Protocol, spoken by a client that others wrote."""

import json
import urllib.request
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from files_to_train import make_rows

from ordspan.commands.models import read_table_model
from serving.served import listening, model_file, serving, standing

triton = pytest.importorskip("tritonclient.http")

X, _ = make_rows(8, seed=5)
INFER = "/v2/models/ordspan/infer"


def tensor(name, values, datatype="FP64"):
    values = np.asarray(values)
    found = triton.InferInput(name, list(values.shape), datatype)
    return found.set_data_from_numpy(values, binary_data=False)


@contextmanager
def asking(folder, model, **options):
    """A client of a service that listens."""
    with (
        listening(folder, model, **options) as address,
        triton.InferenceServerClient(address.removeprefix("http://")) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    with asking(tmp_path_factory.mktemp("numbers"), "numbers", name="numbers-1.0") as client:
        yield client


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Numbers and words, with a token."""
    token = "correct-horse-battery"
    with asking(tmp_path_factory.mktemp("mixed"), "mixed", token=token) as client:
        client.headers = {"Authorization": f"Bearer {token}"}
        yield client


def check(answer, model, table):
    """The tensors of an answer are what the model says of a table."""
    ends = model.predict_interval(table)
    assert answer.as_numpy("rank").dtype == np.int64
    grades = model.classes_[answer.as_numpy("rank") - 1]
    np.testing.assert_array_equal(grades, model.predict(table))
    np.testing.assert_allclose(answer.as_numpy("score"), model.latent(table), rtol=1e-12)
    np.testing.assert_allclose(
        answer.as_numpy("probabilities"), model.predict_proba(table), rtol=1e-9
    )
    for name, expected in (("grade", grades), ("lower", ends[:, 0]), ("upper", ends[:, 1])):
        found = answer.as_numpy(name)
        words = [word.decode() if isinstance(word, bytes) else word for word in found.tolist()]
        assert words == expected.tolist()


def test_health(numbers, mixed):
    for client, name in ((numbers, "numbers-1.0"), (mixed, "ordspan")):
        headers = getattr(client, "headers", {})
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready(name, headers=headers)
        assert not client.is_model_ready("another", headers=headers)
        assert client.get_server_metadata(headers=headers)["name"] == "ordspan"


def test_the_tensors_that_are_described_are_the_tensors_that_come(numbers, mixed):
    told = mixed.get_model_metadata("ordspan", headers=mixed.headers)
    kinds = {one["name"]: one["datatype"] for one in told["inputs"]}
    assert kinds == {"size": "FP64", "price": "FP64", "town": "BYTES", "note": "BYTES"}
    assert told["parameters"]["grades"] == ["low", "mid", "high"]
    told = numbers.get_model_metadata("numbers-1.0")
    assert [one["shape"] for one in told["inputs"]] == [[-1], [-1], [-1]]
    answer = numbers.infer("numbers-1.0", [tensor("all", X)]).get_response()
    assert len(told["outputs"]) == len(answer["outputs"]) == 6
    for described, came in zip(told["outputs"], answer["outputs"], strict=True):
        assert (described["name"], described["datatype"]) == (came["name"], came["datatype"])
        assert came["shape"] == [8, *described["shape"][1:]]


def test_one_tensor_a_column(numbers):
    model = read_table_model(model_file("numbers"))
    table = pl.DataFrame({f"x{j}": X[:, j] for j in range(3)})
    columns = [tensor(f"x{j}", X[:, j]) for j in (2, 0, 1)]
    check(numbers.infer("numbers-1.0", columns, request_id="7"), model, table)
    standing_up = [tensor(f"x{j}", X[:, [j]]) for j in range(3)]
    check(numbers.infer("numbers-1.0", standing_up), model, table)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_all_columns_in_one_tensor(dtype, numbers):
    model = read_table_model(model_file("numbers"))
    values = X.astype(dtype)
    table = pl.DataFrame({f"x{j}": values[:, j].astype(float) for j in range(3)})
    one = tensor("features", values, {"f8": "FP64", "f4": "FP32"}[dtype])
    answer = numbers.infer("numbers-1.0", [one], request_id="seven")
    check(answer, model, table)
    assert answer.get_response()["id"] == "seven"
    assert answer.get_response()["model_name"] == "numbers-1.0"


def test_words_are_bytes(mixed):
    model = read_table_model(model_file("mixed"))
    table = pl.DataFrame(
        {
            "size": [0.5, -2.0],
            "price": ["1234,5", "7"],
            "town": ["Ulm", "Ölde"],
            "note": ["word1 Ulm", ""],
        }
    )
    inputs = [
        tensor("size", table["size"].to_numpy()),
        tensor("price", [1234.5, 7.0]),
        tensor("town", np.array(["Ulm", "Ölde"], dtype=object), "BYTES"),
        tensor("note", np.array(["word1 Ulm", ""], dtype=object), "BYTES"),
    ]
    check(mixed.infer("ordspan", inputs, headers=mixed.headers), model, table)


def test_some_outputs_and_binary_ones_if_they_are_asked_for(numbers):
    """The client asks for binary outputs unless told otherwise; plain ones do as well."""
    for wanted in (
        [triton.InferRequestedOutput("score"), triton.InferRequestedOutput("rank")],
        [triton.InferRequestedOutput(name, binary_data=False) for name in ("score", "rank")],
    ):
        answer = numbers.infer("numbers-1.0", [tensor("all", X)], outputs=wanted)
        assert [one["name"] for one in answer.get_response()["outputs"]] == ["score", "rank"]
        assert answer.as_numpy("score").shape == (8,)


def test_the_errors_are_told_by_the_client(numbers):
    binary = triton.InferInput("all", [8, 3], "FP64").set_data_from_numpy(X)
    for inputs, words in (
        ([binary], "binary_data=False"),
        ([tensor("all", X[:, :2])], r"\[rows, 3\]"),
        ([tensor("x0", X[:, 0])], "see 'x1'"),
        ([tensor("x0", X[:, 0])] * 2, "see 'x1'"),
    ):
        with pytest.raises(triton.InferenceServerException, match=words) as refused:
            numbers.infer("numbers-1.0", inputs)
        assert "occurred in the client" not in str(refused.value)
    outputs = [triton.InferRequestedOutput("grades", binary_data=False)]
    with pytest.raises(triton.InferenceServerException, match="unknown output 'grades'"):
        numbers.infer("numbers-1.0", [tensor("all", X)], outputs=outputs)


ONE = {"name": "all", "shape": [1, 3], "datatype": "FP64", "data": [1, 2, 3]}
WRONG = {
    "no inputs": ({}, "missing required field `inputs`"),
    "no list": ({"inputs": 3}, "Expected `array`"),
    "no tensors": ({"inputs": []}, "see 'x0'"),
    "unknown type": ({"inputs": [ONE | {"datatype": "INT7"}]}, "unknown datatype 'INT7'"),
    "more data": ({"inputs": [ONE | {"data": [1, 2, 3, 4]}]}, "4 values, but shape [1, 3]"),
    "no rows": ({"inputs": [ONE | {"shape": [0, 3], "data": []}]}, "must have shape"),
    "less than no rows": ({"inputs": [ONE | {"shape": [-1, -3]}]}, "3 values, but shape"),
    "huge shape": ({"inputs": [ONE | {"shape": [2**62, 2**62]}]}, "3 values, but shape"),
    "no shape": ({"inputs": [ONE | {"shape": []}]}, "see 'all'"),
    "text as number": (
        {"inputs": [ONE | {"data": [1, 2, "x"]}]},
        "record 1: column 'x2' holds 'x'",
    ),
    "too large": ({"inputs": [ONE | {"data": [1, 2, 1e91]}]}, "too large"),
    "list as number": ({"inputs": [ONE | {"data": [1, 2, [3]]}]}, "holds [3]; use a number"),
    "deep": ({"inputs": [ONE | {"data": [[[1, 2, 3]]]}]}, "1 values, but shape [1, 3]"),
    "columns of two lengths": (
        {
            "inputs": [
                ONE | {"name": f"x{j}", "shape": [1 + j // 2], "data": [1] * (1 + j // 2)}
                for j in range(3)
            ]
        },
        "the same number of rows",
    ),
    "twice": (
        {
            "inputs": [
                ONE | {"name": n, "shape": [1], "data": [1]} for n in ("x0", "x1", "x2", "x2")
            ]
        },
        "a duplicate name",
    ),
    "output": (
        {"inputs": [ONE], "outputs": [{"name": "rnak"}]},
        "unknown output 'rnak'; choose from",
    ),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("here"), "numbers") as client:
        yield client


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes_types_and_names_are_refused(name, client):
    body, words = WRONG[name]
    before = standing(client)
    refused = client.post(INFER, json=body)
    assert refused.status_code in (400, 422)
    assert words in refused.json()["error"]
    assert standing(client) == before


def test_nested_and_flat_data_are_the_same(client):
    nested = client.post(INFER, json={"inputs": [ONE | {"data": [[1, 2, 3]]}]})
    assert nested.json() == client.post(INFER, json={"inputs": [ONE]}).json()
    assert nested.status_code == 200


def test_svmlight_features_come_in_one_tensor(tmp_path):
    from scipy.sparse import csr_array

    model, values = read_table_model(model_file("svmlight")), np.where(X > 0, X, 0.0)
    with serving(tmp_path, "svmlight") as client:
        told = client.get("/v2/models/ordspan").json()["inputs"]
        assert told == [{"name": "features", "datatype": "FP64", "shape": [-1, 3]}]
        one = {"name": "features", "shape": [8, 3], "datatype": "FP64", "data": values.tolist()}
        outputs = client.post(INFER, json={"inputs": [one]}).json()["outputs"]
        found = {tensor["name"]: tensor["data"] for tensor in outputs}
        assert found["grade"] == model.predict(csr_array(values)).tolist()
        flat = one | {"shape": [24], "data": values.ravel().tolist()}
        assert client.post(INFER, json={"inputs": [flat]}).status_code == 400


def test_a_name_that_is_no_part_of_an_address_is_refused(tmp_path):
    with (
        pytest.raises(ValueError, match=r"the name '\.\./x'"),
        serving(tmp_path, "svm", name="../x"),
    ):
        pass


def test_plain_http_does_as_well(numbers):
    """What the documentation of the protocol sends with curl."""
    address = f"http://{numbers._parsed_url.netloc}/v2/models/numbers-1.0/infer"
    body = json.dumps({"inputs": [ONE]}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert len(json.load(answer)["outputs"]) == 6
