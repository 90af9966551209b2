"""Clients that send or read too slowly, or no HTTP: the service lets go of them."""

import socket
import time

import pytest

from serving.served import empty, listening

REQUEST_TIMEOUT = 0.4
HEAD = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SILENT = {
    "nothing at all": b"",
    "half a line": b"GET /v2",
    "half a head": b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n",
    "half a body": HEAD + b'Content-Length: 99\r\n\r\n{"a": 1',
    "half a chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\n99\r\n{"a',
    "a whole request": b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "half a second request": b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v2 HT",
    "body of a GET": b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
    "continue": HEAD + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n",
}
SAID = {
    "half a body": b"408",
    "half a chunk": b"408",
    "continue": b"408",
    "a whole request": b"200",
    "half a second request": b"200",
    "body of a GET": b"200",
}


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    with listening(folder, empty(), timeout=REQUEST_TIMEOUT) as address:
        yield int(address.rpartition(":")[2])


def all_of(connection):
    """What comes until the server ends the connection, which it must."""
    connection.settimeout(30)
    content = b""
    try:
        while part := connection.recv(1 << 16):
            content += part
    except ConnectionResetError:
        pass
    return content


@pytest.mark.parametrize("name", SILENT)
def test_a_sender_that_falls_silent_is_left(name, port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(SILENT[name])
        answer = all_of(connection)
    assert SAID.get(name, b"") in answer
    assert bool(answer) == (name in SAID)


@pytest.mark.parametrize("name", ["half a head", "half a body", "half a chunk"])
def test_a_sender_of_a_byte_at_a_time_is_left(name, port):
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(REQUEST_TIMEOUT / 20)
        connection.sendall(SILENT[name])
        rest = iter(b"X: " + b"y" * 10_000)
        ended = False
        while not ended:
            try:
                connection.send(bytes([next(rest)]))
                ended = not connection.recv(1 << 16)
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
    assert time.monotonic() - begin >= REQUEST_TIMEOUT  # not for another reason


def test_a_reader_that_does_not_read_is_left(port):
    """Answers that nobody takes do not pile up."""
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.1)
        until, ended = time.monotonic() + 300, False
        while not ended:
            assert time.monotonic() < until, "the connection is still there"
            try:
                connection.send(asked * 100)
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True


def test_what_is_not_http_after_an_answer_ends_the_connection_quietly(port, caplog):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head)
        assert b"200 OK" in connection.recv(1 << 16)
        connection.sendall(b"not a chunk\r\n")
        assert b"HTTP" not in all_of(connection)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_request_after_all_that_is_answered(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(SILENT["a whole request"] * 3)
        assert all_of(connection).count(b"200 OK") == 3
