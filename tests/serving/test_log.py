"""What disks, clocks and people do to a state folder: nothing is lost, or it is said."""

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from lessons import compile_all, killed, lessons, one_by_one, start

from ordspan.models.file import to_bytes
from ordspan.serving.app import make_app
from ordspan.serving.engine import Engine
from ordspan.serving.log import Log, LogError
from ordspan.tables.rows import FileError
from serving.served import TestClient

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs limits and rights of POSIX")
N = 20
LESSONS = [lesson._replace(key=f"key {n}") for n, lesson in enumerate(lessons("empty", N))]


@pytest.fixture
def folder(tmp_path):
    """A folder after a kill, before SQLite has moved anything from its WAL to the log."""
    engine = Engine(tmp_path / "first", start("empty"), every=1000)
    for lesson in LESSONS:
        engine.learn([lesson])
    left = killed(engine, tmp_path / "state")
    engine.close()
    return left


def wal(folder):
    return folder / "log.sqlite-wal"


def learned(folder):
    """How many events a folder has; its model must be theirs."""
    engine = Engine(folder)
    n_events = engine.n_events
    assert [event.key for event in engine.events()] == [f"key {n}" for n in range(n_events)]
    expected = one_by_one("empty", LESSONS[:n_events])
    assert to_bytes(engine.model) == expected
    if n_events < N:  # and it goes on
        engine.learn(LESSONS[n_events:])
    assert to_bytes(engine.model) == one_by_one("empty", LESSONS)
    engine.close()
    return n_events


def test_what_is_committed_is_written_to_disk_first(tmp_path):
    log = Log(tmp_path / "log.sqlite")
    for name, value in (("journal_mode", "wal"), ("synchronous", 2)):  # 2 is FULL
        assert log._db.execute(f"PRAGMA {name}").fetchone() == (value,)
    log.close()


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


def test_a_snapshot_that_is_ahead_of_the_log_is_refused(tmp_path):
    engine = Engine(tmp_path / "first", start("empty"), every=10)
    for lesson in LESSONS:
        engine.learn([lesson])
    folder = killed(engine, tmp_path / "state")
    engine.close()
    wal(folder).write_bytes(wal(folder).read_bytes()[:-1])
    said = "snapshot.ordspan has learned 20 events, but the log ends with number 19: some were"
    with pytest.raises(FileError, match=said):
        Engine(folder)
    (folder / "snapshot.ordspan").unlink()  # as it says
    assert learned(folder) == N - 1


def test_a_damaged_snapshot_is_made_up_for_by_the_log(tmp_path):
    engine = Engine(tmp_path / "first", start("empty"), every=7)
    engine.learn(LESSONS)
    engine.close()
    path = engine.folder / "snapshot.ordspan"
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", content[:-1], content[: len(content) // 2], rng.bytes(1000)]
    for place in rng.choice(len(content), size=20, replace=False):
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    for snapshot in damaged:
        path.write_bytes(snapshot)
        assert learned(engine.folder) == N
    path.unlink()
    assert learned(engine.folder) == N


DAMAGE = {
    "not a database": lambda content: b"events" * 1000,
    "malformed": lambda content: content[:4096] + bytes(40_000),
    "was not written by this version": "PRAGMA user_version = 7",
    "holds 19 events, but the last one is number 20": "DELETE FROM events WHERE id = 3",
    "events 1 to 20 cannot be learned again": "UPDATE events SET \"values\" = '[1.0,' WHERE id = 3",
    "Expected `float | null`, got `str`": 'UPDATE events SET "values" = \'["x",1,2]\' WHERE id = 3',
}


@pytest.mark.parametrize("said", DAMAGE)
def test_a_damaged_log_is_refused_and_left_alone(folder, said):
    Engine(folder).close()  # all in one file
    (folder / "snapshot.ordspan").unlink()
    path = folder / "log.sqlite"
    if isinstance(DAMAGE[said], str):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(DAMAGE[said])
    else:
        path.write_bytes(DAMAGE[said](path.read_bytes()))
    content = path.read_bytes()
    with pytest.raises((LogError, FileError), match=said) as error:
        Engine(folder)
    assert str(path) in str(error.value)
    assert "backup" in str(error.value) or "choose another state folder" in str(error.value)
    assert path.read_bytes() == content
    with pytest.raises((LogError, FileError), match=said):  # the lock was let go
        Engine(folder)


@contextmanager
def no_room_beyond(size):
    """No file of this process can grow beyond a size: what SQLite and Python see is real."""
    import resource

    for kind in ("empty", "hashed"):
        compile_all(kind)  # which is kept on disk too
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def as_record(lesson):
    ends = {"lower": lesson.lower, "upper": lesson.upper, "key": lesson.key}
    return dict(zip("abc", json.loads(lesson.values), strict=True)) | ends


@POSIX
def test_a_full_disk_refuses_labels_and_goes_on_when_there_is_room(folder):
    engine = Engine(folder, every=1000)
    with TestClient(make_app(engine), base_url="http://127.0.0.1") as client:
        client.post("/learn", json=as_record(lessons("empty", 1, seed=9, key="new")[0]))
        before, n_events = client.get("/model").content, engine.n_events
        some = [as_record(lesson._replace(key=None)) for lesson in LESSONS]
        with no_room_beyond(wal(folder).stat().st_size):
            for records in (some[0], some):
                answer = client.post("/learn", json=records)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
                assert "log.sqlite: " in answer.json()["detail"]
                assert client.post("/predict", json={"a": 1, "b": 2, "c": 3}).status_code == 200
            assert client.get("/model").content == before
            assert engine.n_events == n_events
        assert client.post("/learn", json=some).status_code == 200
        after = client.get("/model").content
        assert engine.n_events == n_events + N
    assert after != before
    (folder / "snapshot.ordspan").unlink()  # the log alone gives the same model
    engine = Engine(folder)
    assert to_bytes(engine.model) == after
    engine.close()


def test_a_full_database_is_said_so(tmp_path):
    engine = Engine(tmp_path, start("empty"))
    engine.log._db.execute("PRAGMA max_page_count = 3")
    with pytest.raises(LogError, match=r"log\.sqlite: database or disk is full; free some disk"):
        engine.learn(lessons("empty", 300))
    assert engine.n_events == 0
    engine.close()


@POSIX
def test_without_room_for_a_snapshot_the_log_has_it_all(tmp_path):
    some = lessons("hashed", 6)
    engine = Engine(tmp_path / "state", start("hashed"), every=2)
    size = len(to_bytes(engine.model))
    with no_room_beyond(size - 1000):
        for lesson in some[:3]:
            engine.learn([lesson])
    assert {path.name for path in engine.folder.glob("*.ordspan")} == {"base.ordspan"}
    assert not list(engine.folder.glob("*.partial"))
    left = killed(engine, tmp_path / "killed")
    again = Engine(left)
    assert to_bytes(again.model) == one_by_one("hashed", some[:3])
    again.close()
    engine.learn(some[3:])
    assert (engine.folder / "snapshot.ordspan").exists()
    assert to_bytes(engine.model) == one_by_one("hashed", some)
    engine.close()


@POSIX
@pytest.mark.parametrize("size", [0, 1000, 20_000])
def test_a_folder_that_was_begun_without_room_can_be_begun_again(tmp_path, size):
    def begin():
        engine = Engine(tmp_path, start("hashed"))
        engine.learn(lessons("hashed", 1))

    with no_room_beyond(size), pytest.raises(OSError):
        begin()
    engine = Engine(tmp_path, start("hashed"))
    assert engine.n_events == 0
    engine.close()


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
            Engine(folder, start("empty")).close()
        before = sorted(folder.iterdir())
        folder.chmod(0o555)
        said = f"{folder / 'log.sqlite'}: cannot be written .*; choose another name or folder"
        with as_nobody(), pytest.raises(PermissionError, match=said):
            Engine(folder, start("empty"))
        folder.chmod(0o755)
        assert sorted(folder.iterdir()) == before


def test_a_second_engine_on_a_folder_is_refused(folder):
    engine = Engine(folder)
    with pytest.raises(FileError, match=r"log\.sqlite is in use by another process"):
        Engine(folder)
    engine.learn(lessons("empty", 1))  # the first one does not mind
    engine.close()
    Engine(folder).close()


def test_a_log_that_another_process_holds_is_blamed_on_that_process(folder):
    engine = Engine(folder)
    engine.log._db.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(folder / "log.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogError, match=r"locked; another process is writing to it"):
            engine.learn(lessons("empty", 1))
    engine.learn(lessons("empty", 1))
    engine.close()
