"""What disks, clocks and people do to a state folder: nothing is lost, or it is said."""

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from commands.tables import limited_room
from serving.served import killed, learn, lessons, model_of, models_along, refusal, serving

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs limits and rights of POSIX")
N = 20
LESSONS = lessons("empty", N)


@cache
def expected_models():
    """The models after 0, 1, 2, ... lessons."""
    return models_along("empty", LESSONS)


@pytest.fixture(params=[1000])
def folder(tmp_path, request):
    """A folder after a kill, before SQLite has moved anything from its WAL to the log.

    The parameter is the number of events between two snapshots.
    """
    with serving(tmp_path / "first", "empty", every=request.param) as client:
        for lesson in LESSONS:
            learn(client, lesson)
        return killed(client, tmp_path / "state")


def wal(folder):
    return folder / "log.sqlite-wal"


def learned(folder):
    """How many events a folder has; its model must be theirs, and learns the rest."""
    with serving(folder) as client:
        keys = [event.key for event in client.engine.events()]
        assert keys == [lesson["key"] for lesson in LESSONS[: len(keys)]]
        assert client.get("/model").content == expected_models()[len(keys)]
        learn(client, LESSONS)  # of which it knows the first
        assert client.get("/model").content == expected_models()[N]
    return len(keys)


def test_what_is_committed_is_written_to_disk_first(tmp_path):
    with serving(tmp_path, "empty") as client:
        for name, value in (("journal_mode", "wal"), ("synchronous", 2)):  # 2 is FULL
            assert client.engine.log._db.execute(f"PRAGMA {name}").fetchone() == (value,)


def test_a_torn_or_damaged_end_leaves_all_that_was_before_it(folder, tmp_path):
    content = wal(folder).read_bytes()
    frame = 4120  # a page and its head
    last = content[-frame:]
    damaged = [(content + tail, {N}) for tail in (b"garbage" * 700, bytes(9000), last[:2000], last)]
    damaged += [(content[:-1], {N - 1}), (content[:-2000] + b"?" + content[-1999:], {N - 1})]
    cuts = range(len(content) - 100, len(content) - 6 * frame, -1777)
    damaged += [(content[:cut], range(N - 6, N)) for cut in cuts]
    found = []
    for number, (changed, expected) in enumerate(damaged):
        torn = shutil.copytree(folder, tmp_path / f"torn {number}")
        wal(torn).write_bytes(changed)
        found.append(learned(torn))
        assert found[-1] in expected
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("folder", [10], indirect=True)
def test_a_snapshot_that_is_ahead_of_the_log_is_refused(folder):
    wal(folder).write_bytes(wal(folder).read_bytes()[:-1])
    said = "snapshot.ordspan has learned 20 events, but the log ends with number 19: some were"
    assert said in refusal(folder)
    (folder / "snapshot.ordspan").unlink()  # as it says
    assert learned(folder) == N - 1


@pytest.mark.parametrize("folder", [7], indirect=True)
def test_a_damaged_snapshot_is_made_up_for_by_the_log(folder):
    path, rng = folder / "snapshot.ordspan", np.random.default_rng(0)
    content = path.read_bytes()
    damaged = [b"", content[:-1], content[: len(content) // 2], rng.bytes(1000)]
    for place in rng.choice(len(content), size=20, replace=False):
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    for snapshot in damaged:
        path.write_bytes(snapshot)
        assert learned(folder) == N
    path.unlink()
    assert learned(folder) == N


DAMAGE = {
    "not a database": lambda content: b"events" * 1000,
    "malformed": lambda content: content[:4096] + bytes(40_000),
    "was not written by this version": "PRAGMA user_version = 7",
    "holds 19 events, but the last one is number 20": "DELETE FROM events WHERE id = 3",
    "events 1 to 20 cannot be learned again": "UPDATE events SET \"values\" = '[1.0,' WHERE id = 3",
    "Expected `float | null`, got `str`": 'UPDATE events SET "values" = \'["x",1,2]\' WHERE id = 3',
}


@pytest.mark.parametrize("words", DAMAGE)
def test_a_damaged_log_is_refused_and_left_alone(folder, words):
    model_of(folder)  # all in one file
    (folder / "snapshot.ordspan").unlink()
    path = folder / "log.sqlite"
    if isinstance(DAMAGE[words], str):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(DAMAGE[words])
    else:
        path.write_bytes(DAMAGE[words](path.read_bytes()))
    content = path.read_bytes()
    for _ in range(2):  # the lock was let go
        said = refusal(folder)
        assert words in said
        assert str(path) in said
        assert "backup" in said or "choose another state folder" in said
        assert path.read_bytes() == content


@contextmanager
def no_room_beyond(size):
    """No file of this process can grow beyond a size: what SQLite and Python see is real."""
    for kind in ("empty", "hashed"):
        models_along(kind, lessons(kind, 1))  # what is compiled is kept on disk too
    with limited_room(size):
        yield


@POSIX
def test_a_full_disk_refuses_labels_and_goes_on_when_there_is_room(folder):
    some = [lesson | {"key": None} for lesson in LESSONS]
    with serving(folder, every=1000) as client:
        learn(client, lessons("empty", 1, seed=9)[0] | {"key": "new"})
        before, n_events = client.get("/model").content, client.engine.log.last
        with no_room_beyond(wal(folder).stat().st_size):
            for records in (some[0], some):
                answer = client.post("/learn", json=records)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
                assert "log.sqlite: " in answer.json()["detail"]
                assert client.post("/predict", json={"a": 1, "b": 2, "c": 3}).status_code == 200
            assert (client.get("/model").content, client.engine.log.last) == (before, n_events)
        learn(client, some)
        after = client.get("/model").content
        assert client.engine.log.last == n_events + N
    assert after != before
    (folder / "snapshot.ordspan").unlink()  # the log alone gives the same model
    assert model_of(folder) == after


@POSIX
def test_without_room_for_a_snapshot_the_log_has_it_all(tmp_path):
    some = lessons("hashed", 6)
    expected = models_along("hashed", some)
    with serving(tmp_path / "state", "hashed", every=2) as client:
        with no_room_beyond(len(expected[0]) - 1000):
            for lesson in some[:3]:
                learn(client, lesson)
        kept = {path.name for path in client.engine.folder.iterdir()}
        assert {name for name in kept if name.endswith((".ordspan", ".partial"))} == {
            "base.ordspan"
        }
        assert model_of(killed(client, tmp_path / "killed")) == expected[3]
        learn(client, some[3:])
        assert (client.engine.folder / "snapshot.ordspan").exists()
        assert client.get("/model").content == expected[6]


@POSIX
@pytest.mark.parametrize("size", [0, 1000, 20_000])
def test_a_folder_that_was_begun_without_room_can_be_begun_again(tmp_path, size):
    with no_room_beyond(size):
        refusal(tmp_path, "hashed", OSError)
    with serving(tmp_path, "hashed") as client:
        assert client.engine.log.last == 0


@contextmanager
def as_nobody():
    """The rights of an ordinary user: root may write to any folder."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@POSIX
@pytest.mark.parametrize("begun", [False, True])
def test_a_folder_that_cannot_be_written_is_refused_before_anything(begun):
    with tempfile.TemporaryDirectory() as place:  # that others can enter
        folder = Path(place)
        if begun:
            with serving(folder, "empty"):
                pass
        before = sorted(folder.iterdir())
        folder.chmod(0o555)
        with as_nobody():
            said = refusal(folder, "empty", PermissionError)
        assert f"{folder / 'log.sqlite'}: cannot be written" in said
        assert "choose another name or folder" in said
        folder.chmod(0o755)
        assert sorted(folder.iterdir()) == before


def test_a_second_service_on_a_folder_is_refused(folder):
    with serving(folder) as client:
        assert "log.sqlite is in use by another process" in refusal(folder)
        learn(client, LESSONS[0] | {"key": "new"})  # the first one does not mind
    model_of(folder)


def test_a_log_that_is_full_or_held_by_another_process_is_said_so(folder):
    def said(client):
        answer = client.post("/learn", json=[lesson | {"key": None} for lesson in LESSONS * 50])
        assert (answer.status_code, client.engine.log.last) == (503, N)
        return answer.json()["detail"]

    with serving(folder) as client, closing(sqlite3.connect(folder / "log.sqlite")) as other:
        database = client.engine.log._db
        database.execute("PRAGMA busy_timeout = 10")
        other.execute("BEGIN IMMEDIATE")
        assert "locked; another process is writing to it" in said(client)
        other.rollback()
        database.execute("PRAGMA max_page_count = 3")
        assert "log.sqlite: database or disk is full; free some disk space" in said(client)
        database.execute("PRAGMA max_page_count = 10000")
        learn(client, LESSONS[0] | {"key": "new"})
