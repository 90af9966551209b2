"""What the pages call: questions, answers, skips, taking back, pictures, and refusals."""

import json
from importlib.resources import files

import pytest
from at_work import PNG, Caller, begin, write_items

from ordspan.models.file import to_bytes
from ordspan.serving.http import PAGE_POLICY

TOKEN = "a secret of some length"


@pytest.fixture
def work(tmp_path):
    """A session, what calls it, and the true ranks of its items."""
    path, ranks = write_items(tmp_path, n=80)
    session = begin(tmp_path / "state", path, id="id")
    yield Caller(session), ranks
    session.engine.close()


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """What calls a session that learns nothing, because all is refused."""
    folder = tmp_path_factory.mktemp("strict")
    session = begin(folder / "state", write_items(folder, n=80)[0], id="id")
    yield Caller(session)
    session.engine.close()


def again(caller, folder):
    """The same after a restart."""
    caller.session.engine.close()
    return Caller(begin(folder))


def state_of(caller):
    return to_bytes(caller.session.engine.model), caller.call("/api/progress").json()


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
    last = caller.session.engine.events()[-1]
    assert json.loads(last.extra)["asked_by"] == "widest"


def test_after_a_restart_all_goes_on(work, tmp_path):
    caller, ranks = work
    caller.answer_many(ranks, 40)
    caller.answer_many(ranks, 5, "bob")
    caller.skip(caller.next()["item"], key="s")
    asked, before = caller.next(), state_of(caller)
    other = again(caller, tmp_path / "state")
    assert other.next() == asked
    assert state_of(other) == before
    assert other.answer(asked, 1).json()["answered"] == 41  # what the one asked, told the other
    assert asked["item"] != other.next()["item"]
    other.session.engine.close()


def test_an_answer_sent_twice_counts_once(work):
    caller, _ = work
    asked = caller.next()
    first = caller.answer(asked, 2, key="k")
    before = state_of(caller)
    assert caller.answer(asked, 2, key="k").json() == first.json()
    assert caller.answer(asked, 3, key="k").status_code == 409
    assert caller.answer(asked, 2, key="k", annotator="bob").status_code == 409
    assert caller.answer(asked, 2, key="other").status_code == 409  # it is answered
    assert caller.call("/api/undo", {"key": "k", "annotator": "ann"}).status_code == 409
    assert state_of(caller) == before


def test_undo_takes_the_last_answer_or_skip_back_to_the_byte(work, tmp_path):
    caller, ranks = work
    caller.answer_many(ranks, 35)
    before, asked = state_of(caller), caller.next()
    caller.answer(asked, 2, 4)
    after = state_of(caller)
    undone = caller.call("/api/undo", {"key": "u", "annotator": "ann"}).json()
    assert undone == asked | {"undone": "learn", "lower": 2, "upper": 4}
    assert state_of(caller) == before
    assert caller.call("/api/undo", {"key": "u", "annotator": "ann"}).json() == undone
    assert caller.next()["item"] == asked["item"]
    caller.answer(asked, 2, 4, key="again")
    assert state_of(caller) == after
    skipped = caller.next()
    assert caller.skip(skipped["item"], key="s", seconds=1.0).json()["answered"] == 36
    assert caller.next()["item"] != skipped["item"]
    undone = caller.call("/api/undo", {"key": "v", "annotator": "ann"}).json()
    assert (undone["undone"], undone["lower"], undone["item"]) == ("skip", None, skipped["item"])
    before = state_of(caller)
    assert state_of(again(caller, tmp_path / "state")) == before


def test_one_cannot_take_back_what_others_said(work):
    caller, ranks = work
    caller.answer_many(ranks, 2, "bob")
    undo = {"key": "u", "annotator": "ann"}
    refused = caller.call("/api/undo", undo)
    assert (refused.status_code, "ann has no answer" in refused.json()["detail"]) == (404, True)
    caller.answer_many(ranks, 1)
    assert caller.call("/api/undo", undo).is_success
    assert caller.call("/api/undo", undo | {"annotator": "bob"}).status_code == 409


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


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_a_sentence_and_nothing_is_learned(strict, name):
    for value in WRONG[name]:
        refused = strict.call("/api/answer", GOOD | {name: value})
        assert refused.status_code == (404 if value == 80 else 422), value
        assert len(refused.json()["detail"]) > 10
        assert strict.session.engine.n_events == 0


def test_pictures_are_found_by_numbers_only(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "items.csv").write_text("picture\na.png\na.png\n")
    session = begin(tmp_path / "state", tmp_path / "items.csv")
    caller = Caller(session)
    found = caller.call("/api/image?item=0&cell=0")
    assert (found.content, found.headers["content-type"]) == (PNG, "image/png")
    assert found.headers["x-content-type-options"] == "nosniff"
    for item, cell in ((0, 1), (2, 0), ("a.png", 0), (0, "a.png"), (-1, 0), ("9" * 5000, 0)):
        refused = caller.call(f"/api/image?item={item}&cell={cell}")
        assert refused.status_code == 404
    assert caller.call("/api/image?path=a.png").status_code == 422
    asked = caller.next()
    assert caller.answer(asked, 2).is_success
    assert caller.next()["asked_by"] == "random"
    session.engine.close()


def test_pages_need_no_token_and_data_does(tmp_path):
    path, _ = write_items(tmp_path)
    session = begin(tmp_path / "state", path)
    caller = Caller(session, token=TOKEN)
    pages = [file.name for file in (files("ordspan.serving.annotate") / "pages").iterdir()]
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
    session.engine.close()
