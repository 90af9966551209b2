"""What the pages call: questions, answers, skips, taking back, pictures, and refusals."""

import json
from importlib.resources import files

import pytest
from at_work import annotating, write_items

from ordspan.models.file import to_bytes
from ordspan.serving.http import PAGE_POLICY

TOKEN = "a secret of some length"


@pytest.fixture
def work(tmp_path):
    """What calls a session, and the true ranks of its items."""
    path, ranks = write_items(tmp_path, n=80)
    with annotating(tmp_path / "state", path, id="id") as caller:
        yield caller, ranks


def state_of(caller):
    return to_bytes(caller.engine.model), caller.call("/api/progress").json()


def test_the_task_is_told_and_a_page_of_other_items_has_to_reload(work):
    caller, _ = work
    task = caller.call("/api/task").json()
    assert caller.call("/api/next", {"annotator": "ann", "folder": task.pop("folder")}).is_success
    assert task == {"title": "t", "grades": list("12345"), "n_items": 80, "question": "?"}
    answer = caller.call("/api/next", {"annotator": "ann", "folder": "another"})
    assert (answer.status_code, "reload the page" in answer.json()["detail"]) == (409, True)


def test_an_item_is_asked_until_it_is_answered(work):
    caller, _ = work
    asked = caller.next()
    assert asked["name"] == f"x{asked['item']}"
    cells = [(cell["name"], cell["kind"]) for cell in asked["cells"]]
    assert cells == [("size", "number"), ("age", "number"), ("town", "text")]
    assert (asked["asked_by"], asked["guess"], asked["show_guess"]) == ("random", None, False)
    assert (asked["answered"], asked["left"]) == (0, 80)
    assert caller.next() == asked
    assert caller.next("bob")["item"] == asked["item"]
    assert caller.answer(asked, 2, 3).json() == {"event": 1, "answered": 1}
    assert caller.next()["item"] != asked["item"]
    assert caller.next()["left"] == 79
    assert caller.next("bob")["item"] == asked["item"]


def test_an_item_that_was_chosen_for_its_width_never_tests_the_model(work):
    caller, ranks = work
    caller.answer_many(ranks, 40)
    while (asked := caller.next())["asked_by"] == "random":
        caller.answer(asked, ranks[asked["item"]])
    caller.answer(asked | {"asked_by": "random"}, 1)
    last = caller.engine.events()[-1]
    assert json.loads(last.extra)["asked_by"] == "widest"


def test_after_a_restart_all_goes_on(tmp_path):
    path, ranks = write_items(tmp_path, n=80)
    with annotating(tmp_path / "state", path, id="id") as caller:
        caller.answer_many(ranks, 40)
        caller.answer_many(ranks, 5, "bob")
        caller.skip(caller.next(), "s")
        caller.answer(caller.next(), 1)
        caller.undo("u")
        asked, before = caller.next(), state_of(caller)
    with annotating(tmp_path / "state") as other:
        assert other.next() == asked
        assert state_of(other) == before
        assert other.answer(asked, 1).json()["answered"] == 41  # what the one asked, told the other
        assert asked["item"] != other.next()["item"]


def test_an_answer_sent_twice_counts_once(work):
    caller, _ = work
    asked = caller.next()
    first = caller.answer(asked, 2, key="k")
    before = state_of(caller)
    assert caller.answer(asked, 2, key="k").json() == first.json()
    assert caller.answer(asked, 3, key="k").status_code == 409
    assert caller.answer(asked, 2, key="k", annotator="bob").status_code == 409
    assert caller.answer(asked, 2, key="other").status_code == 409  # it is answered
    assert caller.undo("k").status_code == 409
    assert state_of(caller) == before


def test_undo_takes_the_last_answer_or_skip_back_to_the_byte(work):
    caller, ranks = work
    caller.answer_many(ranks, 35)
    before, asked = state_of(caller), caller.next()
    caller.answer(asked, 2, 4)
    after = state_of(caller)
    undone = caller.undo("u").json()
    assert undone == asked | {"undone": "learn", "lower": 2, "upper": 4}
    assert state_of(caller) == before
    assert caller.undo("u").json() == undone
    assert caller.next()["item"] == asked["item"]
    caller.answer(asked, 2, 4, key="again")
    assert state_of(caller) == after
    skipped = caller.next()
    assert caller.skip(skipped, "s", seconds=1.0).json()["answered"] == 36
    assert caller.next()["item"] != skipped["item"]
    undone = caller.undo("v").json()
    assert (undone["undone"], undone["lower"], undone["item"]) == ("skip", None, skipped["item"])


def test_one_cannot_take_back_what_others_said(work):
    caller, ranks = work
    caller.answer_many(ranks, 2, "bob")
    refused = caller.undo("u")
    assert (refused.status_code, "ann has no answer" in refused.json()["detail"]) == (404, True)
    caller.answer_many(ranks, 1)
    assert caller.undo("u").is_success
    assert caller.undo("u", "bob").status_code == 409


GOOD = {"key": "k", "annotator": "ann", "item": 1, "lower": 1, "upper": 2, "seconds": 1.0}
WRONG = {
    "lower": [0, 1.5, 3],
    "upper": [6, 10**400, None],
    "item": [80, -1, "1"],
    "seconds": [-1, 1e300],
    "annotator": [" ", "a\u202eb", "a\u200bb", "a" * 101, None],
    "key": ["", "k" * 201],
    "asked_by": ["import"],
    "via": ["mail"],
    "shown": ["yes"],
}


def test_what_is_wrong_is_refused_with_a_sentence_and_nothing_is_learned(work):
    caller, _ = work
    for name, values in WRONG.items():
        for value in values:
            refused = caller.call("/api/answer", GOOD | {name: value})
            assert refused.status_code == (404 if value == 80 else 422), value
            assert len(refused.json()["detail"]) > 10
            assert caller.engine.log.last == 0


def test_pages_need_no_token_and_data_does(tmp_path):
    pages = [file.name for file in (files("ordspan.serving.annotate") / "pages").iterdir()]
    with annotating(tmp_path / "state", write_items(tmp_path)[0], token=TOKEN) as caller:
        for page in ("/", "/progress", *(f"/static/{name}" for name in pages)):
            found = caller.call(page)
            assert found.is_success, page
            assert found.headers["content-security-policy"] == PAGE_POLICY
            assert found.headers["x-content-type-options"] == "nosniff"
        assert caller.call("/static/../app.py").status_code in (401, 404)
        for path in ("/api/task", "/api/progress", "/api/image?item=0&cell=0"):
            assert caller.call(path).status_code == 401
            sent = {"Authorization": f"Bearer {TOKEN}"}
            assert caller.call(path, headers=sent).status_code in (200, 404)
        assert caller.call("/api/next", {"annotator": "ann"}).status_code == 401
