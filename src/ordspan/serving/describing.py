"""OpenAPI schemas of the requests, and a page of them without scripts."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import FastAPI, Response

from ordspan.files.features import Recipe
from ordspan.serving.labels import some_range
from ordspan.tabular import TabularModel

RECORD = {"type": "object", "description": "A value for every column of the model."}
LABELLED = {
    "type": "object",
    "description": "A record with its label, as a grade or a range such as 3-5, >=3 or [3, 5]; or "
    "with lower and upper. A label sent again with the same key is learned once.",
    "properties": {"label": {}, "lower": {}, "upper": {}, "key": {"type": "string"}},
}


def _request_body(record: dict[str, Any], example: Any) -> dict[str, Any]:
    schema = {"oneOf": [record, {"type": "array", "items": record}]}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def predict_body(model: TabularModel) -> dict[str, Any]:
    """The body of a request to predict, with an example for the model."""
    return _request_body(RECORD, example_record(model.recipe))


def learn_body(model: TabularModel) -> dict[str, Any]:
    """The body of a request to learn, with an example for the model."""
    label = {"label": some_range(model.classes_), "key": "interview 17"}
    return _request_body(LABELLED, example_record(model.recipe) | label)


def example_record(recipe: Recipe) -> dict[str, Any]:
    """A record with a value for every column.

    >>> example_record(Recipe(("age",), words=(("job", ("", "cook")),), hashed=("note",)))
    {'age': 1.5, 'job': 'cook', 'note': 'some text'}
    """
    if recipe.n_sparse:
        return {"0" if recipe.zero_based else "1": 1.5}
    words = {name: next(filter(None, known), "") for name, known in recipe.words}
    return dict.fromkeys(recipe.numbers, 1.5) | words | dict.fromkeys(recipe.hashed, "some text")


def add_docs_page(app: FastAPI) -> None:
    """Add a page that lists all requests."""

    @app.get("/docs", response_class=Response, include_in_schema=False)
    async def docs() -> Response:
        return Response(page(app.openapi()), media_type="text/html; charset=utf-8")


def page(schema: dict[str, Any]) -> str:
    """The requests of an OpenAPI description as HTML.

    >>> info = {"title": "<b>", "version": "1", "description": ""}
    >>> "&lt;b&gt; 1" in page({"info": info, "paths": {}})
    True
    """
    info, lines = schema["info"], []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            lines.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2>")
            lines.append(f"<p>{escape(operation.get('description', ''))}</p>")
            for content in operation.get("requestBody", {}).get("content", {}).values():
                if "example" in content:
                    lines.append(f"<pre>{escape(_example(content['example']))}</pre>")
    title = escape(f"{info['title']} {info['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<h1>{title}</h1><p>{escape(info['description'])} "
        'The full schema is at <a href="/openapi.json">/openapi.json</a>.</p>'
        + "".join(lines)
        + "</html>"
    )


def _example(example: Any) -> str:
    import json

    return json.dumps(example)
