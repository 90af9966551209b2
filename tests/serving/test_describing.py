"""What the service says of its requests."""

import json
from html import escape

import pytest

from serving.served import empty, serving


def test_every_request_is_described(tmp_path):
    with serving(tmp_path, empty()) as client:
        described = client.get("/openapi.json").json()
        page = client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in page.text
    assert {"/predict", "/learn", "/model", "/metrics", "/v2", "/v2/models/ordspan/infer"} <= set(
        described["paths"]
    )
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            assert f"{method.upper()} {path}<" in page.text
            assert about["description"] in page.text


@pytest.mark.parametrize("kind", ["numbers", "svmlight", "mixed"])
def test_the_examples_of_the_page_are_for_the_model(kind, tmp_path):
    with serving(tmp_path, kind) as client:
        page = client.get("/docs").text
        described = client.get("/openapi.json").json()["paths"]
        for path in ("/predict", "/learn"):
            body = described[path]["post"]["requestBody"]["content"]["application/json"]
            assert escape(json.dumps(body["example"])) in page
            assert client.post(path, json=body["example"]).status_code == 200
        (event,) = client.engine.events()
        assert event.lower < event.upper
