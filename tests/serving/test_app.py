"""The service over HTTP: what it predicts, learns, hands out and says of itself."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from files_to_train import make_rows
from prometheus_client.parser import text_string_to_metric_families
from scipy.sparse import csr_array

from commands.tables import said
from ordspan import load, train_files
from ordspan.models.file import to_bytes
from serving.served import ROW, empty, learn, lessons, model_file, serving, standing

X, GRADES = make_rows(12, seed=7)
pytestmark = pytest.mark.filterwarnings("ignore:values unlike")
KINDS = ("numbers", "kernel", "svm", "svmlight", "mixed")


def records_of(kind):
    """Rows that the model has not seen."""
    rows = lessons(kind, 12, seed=7)
    return [{name: row[name] for name in row if name not in ("label", "key")} for row in rows]


def table_of(kind):
    """The same rows as `TableModel` takes them."""
    if kind != "svmlight":
        return pl.DataFrame(records_of(kind))
    rows = [record["features"] for record in records_of(kind)]
    return csr_array([[row.get(place, 0.0) for place in (1, 2, 3)] for row in rows])


def expected_of(kind, model):
    """What a model says of the rows, as the service says it."""
    table, grades = table_of(kind), model.classes_.tolist()
    said_of_rows = zip(
        records_of(kind),
        model.predict(table).tolist(),
        model.latent(table).tolist(),
        model.predict_proba(table).tolist(),
        model.predict_interval(table).tolist(),
        strict=True,
    )
    return [
        {
            "grade": grade,
            "rank": grades.index(grade) + 1,
            "score": pytest.approx(score, rel=1e-12),
            "range": ends,
            "probabilities": pytest.approx(
                dict(zip(map(str, grades), chances, strict=True)), rel=1e-9
            ),
        }
        | ({"unseen": {"town": "Rom"}} if record.get("town") == "Rom" else {})
        for record, grade, score, chances, ends in said_of_rows
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_and_a_row_are_predicted_as_the_model_does(kind, tmp_path):
    model = load(model_file(kind))
    expected = expected_of(kind, model)
    assert len({row["grade"] for row in expected}) > 1
    with serving(tmp_path, kind) as client:
        before = standing(client)
        assert client.post("/predict", json=records_of(kind)).json() == expected
        alone = [client.post("/predict", json=record).json() for record in records_of(kind)[:3]]
        assert alone == expected[:3]
        many = records_of(kind) * 300  # so many are predicted in a thread
        assert client.post("/predict", json=many).json() == expected * 300
        for coverage in (0.5, 0.99):
            rows = client.post(f"/predict?coverage={coverage}", json=records_of(kind)).json()
            ranges = model.predict_interval(table_of(kind), coverage).tolist()
            assert [row["range"] for row in rows] == ranges
        assert standing(client) == before


def test_a_model_of_bands_reads_brackets_and_answers_with_edges(tmp_path):
    model = load(model_file("bands"))
    low, high = [None, "2", "3", "4"], ["2", "3", "4", None]
    table = table_of("bands")
    ranges = [
        [model.classes_.tolist().index(end) for end in row] for row in model.predict_interval(table)
    ]
    with serving(tmp_path, "bands") as client:
        answers = client.post("/predict", json=records_of("bands")).json()
        assert [a["range"] for a in answers] == [[low[a], high[b]] for a, b in ranges]
        assert answers[0]["probabilities"].keys() == {"under 2", "2 to 3", "3 to 4", "4 or more"}
        labels = ["2-4", "at least 3", "2 to 3", 3.5, {"lower": 2, "upper": 4}]
        for key, label in enumerate(labels):
            named = label if isinstance(label, dict) else {"label": label}
            learn(client, records_of("bands")[0] | named | {"key": str(key)})
    printed = said("serve", "--state", tmp_path, "--export", "-").encode()
    rows = pl.read_csv(printed, infer_schema=False).select("lower", "upper").rows()
    assert rows == [("2", "4"), ("3", None), ("2", "3"), ("3", "4"), ("2", "4")]


def test_a_wrong_parameter_is_refused_and_nothing_is_learned(tmp_path):
    row = {"a": 1, "b": 2}
    with serving(tmp_path, empty()) as client:
        for query, words in (
            *((f"/predict?coverage={bad}", "coverage ") for bad in ("0.77", "nan", "abc")),
            ("/predict?covarage=0.5", "unknown parameter 'covarage'; remove it"),
            ("/predict?coverage=0.5&x=1", "unknown parameter 'x'; remove it"),
            ("/predict?%ff" + 60_000 * "x", "(60,001 characters); remove it"),
            ("/learn?key=visit", "unknown parameter 'key'; remove it"),
        ):
            body = row | {"label": 3} if "learn" in query else row
            refused = client.post(query, json=body)
            assert (refused.status_code, client.engine.log.last) == (422, 0)
            assert words in refused.json()["detail"]
        assert client.post("/predict?", json=row).status_code == 200


@pytest.mark.parametrize("kind", ["numbers", "kernel", "svmlight", "mixed"])
def test_learning_is_partial_fit_to_the_byte(kind, tmp_path):
    model, records = load(model_file(kind)), records_of(kind)
    with serving(tmp_path, kind) as client:
        before = client.post("/predict", json=records[0]).json()
        done = learn(client, lessons(kind, 12, seed=7))
        content = client.get("/model").content
        assert [row["event"] for row in done] == list(range(1, 13))
        assert (done[0]["predicted"], done[0]["range"]) == (before["grade"], before["range"])
        after = client.post("/predict", json=records[0]).json()
    labels = [lesson["label"] for lesson in lessons(kind, 12, seed=7)]
    model.partial_fit(table_of(kind), np.array(labels))
    assert content == to_bytes(model)
    assert after["score"] == pytest.approx(model.latent(table_of(kind))[0], rel=1e-12)
    assert after["score"] != before["score"]


def test_what_is_answered_was_predicted_before_each_row(tmp_path):
    """Within one list too: the second of two equal rows is predicted by what the first taught."""
    rows = [{"a": 1, "b": 2, "label": 5}] * 9
    with serving(tmp_path / "list", empty()) as client, serving(tmp_path / "one", empty()) as other:
        together = [row["predicted"] for row in learn(client, rows)]
        assert together == [learn(other, row)["predicted"] for row in rows]
        assert together[0] != together[-1]


def test_a_trained_model_names_absurd_numbers(tmp_path):
    absurd = records_of("numbers")[0] | {"x0": -9999, "x2": None}
    with serving(tmp_path, "numbers") as client:
        asked = client.post("/predict", json=absurd).json()
        assert asked["far"] == learn(client, absurd | {"label": 2})["far"] == {"x0": -9999}
        event = client.engine.events()[0]._replace(extra='{"item": 7}')  # as in annotate
        assert client.engine.learn([event])[0].extra == event.extra


def test_one_absurd_row_is_clipped_named_and_can_be_undone(tmp_path):
    rows = [{"a": x, "b": -x, "label": 1 + number % 5} for number, x in enumerate(X[:, 0])] * 5
    with serving(tmp_path, empty()) as client:
        learn(client, rows)
        before, count = client.get("/model").content, len(rows)
        absurd = {"a": -9999, "b": 0.5, "label": 2, "key": "absurd"}
        far = [{"a": a, "b": 0.5} for a in (-9999, -1e9)]
        near, same = client.post("/predict", json=far).json()
        told = learn(client, absurd)
        assert told["clipped"] == near["clipped"] == {"a": -9999}
        assert (same["score"], same["clipped"]) == (pytest.approx(near["score"]), {"a": -1e9})
        assert learn(client, absurd) == told
        assert client.get("/model").content != before
        undone = {"event": count + 2, "undone": count + 1}
        for _ in range(2):
            assert client.post("/undo", json={"key": "absurd"}).json() == undone
        assert client.get("/model").content == before
        refused = client.post("/learn", json=absurd)
        assert (refused.status_code, "undone" in refused.json()["detail"]) == (409, True)
        missing = client.post("/undo", json={"key": "other"})
        assert (missing.status_code, "'other'" in missing.json()["detail"]) == (404, True)


def test_the_label_may_have_its_own_name_and_columns_left_out_are_ignored(tmp_path):
    rows = "".join(f"{n},{x},{1 + (x > 0)}\n" for n, x in enumerate(X[:, 0])) * 20
    (tmp_path / "a.csv").write_text("id,size,stars\n" + rows)
    train_files(tmp_path / "a.csv", tmp_path / "m", label="stars", drop=["id"])
    row = {"id": 7, "size": 0.5}
    with serving(tmp_path / "state", load(tmp_path / "m")) as client:
        for body in (row | {"stars": 2}, row | {"stars": [1, 2]}, {"size": 0.5, "label": 2}):
            learn(client, body)
        assert client.post("/predict", json=row).status_code == 200
        both = client.post("/learn", json=row | {"stars": 2, "lower": 1})
        assert (both.status_code, "not both" in both.json()["detail"]) == (422, True)
        unknown = client.post("/predict", json=row | {"colour": 1})
        assert (unknown.status_code, "`colour`" in unknown.json()["detail"]) == (422, True)
        assert [(e.lower, e.upper) for e in client.engine.events()] == [(2, 2), (1, 2), (2, 2)]


def test_an_svm_predicts_but_does_not_learn(tmp_path):
    with serving(tmp_path, "svm") as client:
        before = standing(client)
        record = records_of("svm")[0]
        refused = client.post("/learn", json=record | {"label": 1})
        assert refused.status_code == 422
        with pytest.raises(ValueError, match="SVM") as words:
            client.engine.model.partial_fit(table_of("svm"), GRADES)
        assert refused.json()["detail"] == f"the request: {words.value}"
        assert client.post("/predict", json=record).status_code == 200
        assert standing(client) == before


def test_a_full_queue_is_told_to_come_again_and_predictions_go_on(tmp_path):
    row = {"a": 1, "b": 2, "label": 3}
    with serving(tmp_path, empty(), most_waiting=3) as client, ThreadPoolExecutor(1) as pool:
        with client.engine._lock:  # as if the disk took its time
            accepted = pool.submit(client.post, "/learn", json=[row] * 3)
            while number(client, "ordspan_queue_rows") < 3:
                assert not accepted.done()
            refused = client.post("/learn", json=row)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "3 of at most 3 rows are waiting" in refused.json()["detail"]
            assert client.post("/predict", json={"a": 1, "b": 2}).json()["score"] == 0.0
        assert accepted.result().status_code == 200
        assert learn(client, row)["event"] == 4
        never = client.post("/learn", json=[row] * 4)
        assert never.status_code == 413, "coming again would not help"
        assert client.engine.log.last == 4


@pytest.mark.parametrize("kind", ["numbers", "svmlight", "mixed"])
def test_requests_are_described_by_examples_for_the_model(kind, tmp_path):
    with serving(tmp_path, kind) as client:
        described = client.get("/openapi.json").json()["paths"]
        requests = ["/predict", "/learn", "/undo", "/model", "/metrics", "/health"]
        assert list(described) == requests
        about = client.get("/").json()
        assert (about["title"], about["requests"]) == ("ordspan", requests)
        assert client.get("/docs").json()["paths"] == client.get(about["docs"]).json()["paths"]
        for path in ("/predict", "/learn"):
            body = described[path]["post"]["requestBody"]["content"]["application/json"]
            assert client.post(path, json=body["example"]).status_code == 200
        (event,) = client.engine.events()
        assert event.lower < event.upper


def test_the_model_is_a_file_for_every_command(tmp_path):
    record = records_of("mixed")[0]
    with serving(tmp_path / "state", "mixed") as client:
        learn(client, record | {"label": ">=mid"})
        grade = client.post("/predict", json=ROW).json()["grade"]
        answer = client.get("/model")
        assert "attachment" in answer.headers["content-disposition"]
        assert answer.content == to_bytes(client.engine.model)
    (tmp_path / "model").write_bytes(answer.content)
    pl.DataFrame([ROW]).write_csv(tmp_path / "rows.csv", separator=";")
    assert "301 rows" in said("info", tmp_path / "model")
    words = ("--model", tmp_path / "model", "--out", tmp_path / "out.csv")
    said("predict", tmp_path / "rows.csv", *words)
    assert pl.read_csv(tmp_path / "out.csv")["prediction"].to_list() == [grade]


def families(client):
    return {f.name: f for f in text_string_to_metric_families(client.get("/metrics").text)}


def number(client, name, **labels):
    samples = [s for f in families(client).values() for s in f.samples if s.name == name]
    return sum(s.value for s in samples if labels.items() <= s.labels.items())


def slow_counts(events):
    """Rows, error, ranges that contain and that meet the label, by the definitions."""
    error = contains = meets = 0
    for event in events:
        label = set(range(event.lower, event.upper + 1))
        predicted = set(range(event.low, event.high + 1))
        error += min(abs(event.predicted - rank) for rank in label)
        contains += label <= predicted
        meets += bool(label & predicted)
    return [len(events), error, contains, meets]


def counts(client):
    names = ("learned_rows", "absolute_error", "range_contains_label", "range_meets_label")
    return [number(client, f"ordspan_{name}_total") for name in names]


def test_metrics_count_what_the_log_holds_after_a_restart_too(tmp_path):
    rng = np.random.default_rng(3)
    for start in ("numbers", None):
        with serving(tmp_path, start) as client:
            assert counts(client) == slow_counts(client.engine.events())
            for _ in range(3):
                labels = np.sort(rng.integers(1, 5, (12, 2))).tolist()
                pairs = zip(records_of("numbers"), labels, strict=True)
                learn(client, [record | {"label": label} for record, label in pairs])
            client.post("/learn", json={"x0": 1})
            rows, error, contains, meets = slow_counts(client.engine.events())
            assert 0 < contains < meets < rows
            assert counts(client) == [rows, error, contains, meets]
    assert rows == 72


def test_metrics_count_requests_by_path_and_status(tmp_path):
    with serving(tmp_path, empty()) as client:
        for path in ("/predict", "/predict", "/secret/1", "/secret/2"):
            client.post(path, json={"a": 1, "b": 2})
        client.post("/predict", json={"a": 1})
        count = "ordspan_request_seconds_count"
        assert number(client, count, path="/predict", status="200") == 2
        assert number(client, count, path="/predict", status="422") == 1
        assert number(client, count, path="other", status="404") == 2
        assert "secret" not in client.get("/metrics").text
        kinds = {name: family.type for name, family in families(client).items()}
        assert kinds["ordspan_request_seconds"] == "histogram"
        assert kinds["ordspan_queue_rows"] == "gauge"
