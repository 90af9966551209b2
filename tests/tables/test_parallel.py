"""Threads of readers."""

from threading import Event

from ordspan.tables.text import parallel_map


def test_a_discarded_reader_does_not_wait_for_its_threads():
    """A garbage collection may discard one while its thread holds locks: waiting would deadlock."""
    started, release, done = Event(), Event(), []

    def make(item):
        if item > 0:
            started.set()
            release.wait(5)
            done.append(item)
        return item

    found = parallel_map(make, iter(range(3)))
    assert next(found) == 0
    assert started.wait(5)
    found.close()
    assert not done
    release.set()
