"""Requests that nobody should send: good ones with something wrong, as bytes."""

import json
import re

from fuzz.texts import HOSTILE, damaged

MOST_BYTES = 1 << 18
HOST = b"Host: 127.0.0.1"
METHODS = b"GET POST PUT OPTIONS DELETE TRACE CONNECT get P\x00".split(b" ")
VERSIONS = b"HTTP/1.1 HTTP/1.0 HTTP/0.9 HTTP/2.0 HTTP/9.9 HTTP/1. HTTPS/1.1 ".split(b" ")
PATHS = b"""
/predict /learn /model /metrics /docs /openapi.json /v2 / /v2/health/live /v2/models/ordspan
/v2/models/ordspan/infer /v2/models/%2e%2e /predict/ /learn/ //learn /../../etc/passwd /learn#x
/%2e%2e/%2e%2e/etc/passwd /model%00 /%ff%fe /% /%zz /\xc3\xa9 * http://evil/learn evil:80 \\learn
/predict? /predict?coverage=abc /predict?coverage=nan /predict?coverage=1e999 /learn;x
/predict?coverage=%ff /predict?coverage=0.8&coverage=0.9
""".split()
PATHS += (b"/" + b"a" * 60_000, b"/" + b"a" * 90_000, b"/" + b"%41" * 5000, b"/learn\t")
HEADERS = b"""Host: evil.example
Host: [[::1
Host:
Host: localhost:99999999
Host: 127.0.0.1
Transfer-Encoding: chunked
Transfer-Encoding: identity
Transfer-Encoding: xchunked
Transfer-Encoding: chunked, chunked
Transfer-Encoding : chunked
Content-Length: 0
Content-Length: 5
Content-Length: -1
Content-Length: +5
Content-Length: 1e3
Content-Length: 0x10
Content-Length: 5, 5
Content-Length: 99999999999999999999
Content-Type: text/plain
Content-Type: application/json; charset=utf-16
Content-Type: \xff
Content-Encoding: gzip
Inference-Header-Content-Length: 3
Expect: 100-continue
Expect: x
Authorization: Bearer \xff\xfe
no colon
: no name
X\x00: 1
X: \x00
X: \x7f
X: \xc3\xbc""".splitlines()
HEADERS += (b"Connection: upgrade\r\nUpgrade: websocket", b"Connection: upgrade\r\nUpgrade: h2c")
HEADERS += (b"X:\r\n folded", b"X: a\nY: b", b"Cookie: " + b"c" * 9000, b"X: " + b"y" * 70_000)
HEADERS += (b"\r\n".join(b"X%d: 1" % n for n in range(3000)),)
VALUES = rb"""
null true NaN Infinity 1e999 -1e999 1e308 -0 9 "" "x" "1,5" "\ud800" "\u0000" [] {} [1,2] [[1],2]
{"a":{"a":1}} "NA" "<script>" "1-3" ">=2" "3-1"
""".split()
VALUES += (b"9" * 30, b"9" * 5000, b'"\xff"', b'"%s"' % (b"x" * 5000), '"٣\u202e"'.encode())
VALUES += (b"[" * 900 + b"]" * 900, b"[" * 9000, b"{" * 9000)
TENSORS = [{"name": n, "shape": [1], "datatype": "FP64", "data": [1]} for n in ("a", "b", "word")]
BODIES = {
    b"/predict": {"a": 1, "b": 2.5, "word": "roof"},
    b"/learn": {"a": 1, "b": 2.5, "word": "roof", "label": None, "key": None},
    b"/v2/models/ordspan/infer": {"inputs": TENSORS, "outputs": [{"name": "rank"}], "id": "7"},
}


def pick(rng, values):
    return values[rng.integers(len(values))]


def connection(rng, label: str) -> tuple[str, list[bytes]]:
    """How to send, and the requests; a label that is no grade leaves little to be learned."""
    how = pick(rng, ["at once"] * 12 + ["in pieces", "slowly", "half", "broken off"])
    requests = [request(rng, label) for _ in range(1 if rng.random() < 0.8 else rng.integers(2, 5))]
    return how, requests


def request(rng, label: str) -> bytes:
    """A good request with something wrong, mostly."""
    path = pick(rng, list(BODIES))
    good = BODIES[path] | ({"label": label} if path == b"/learn" else {})
    body = json.dumps([good] * int(rng.integers(1, 4)) if rng.random() < 0.3 else good).encode()
    if rng.random() < 0.7:
        body = bad_body(rng, body)
    method, version, what = b"POST", b"HTTP/1.1", rng.random()
    headers = [HOST, b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    if what < 0.25:
        method, path = pick(rng, METHODS), pick(rng, PATHS)
    elif what < 0.3:
        version = pick(rng, VERSIONS)
    elif what < 0.55:
        for _ in range(rng.integers(1, 4)):
            headers.insert(int(rng.integers(len(headers) + 1)), pick(rng, HEADERS))
        if rng.random() < 0.3:
            del headers[rng.integers(len(headers))]
    if b"chunked" in b"".join(headers) or rng.random() < 0.05:
        headers[-1:] = [b"Transfer-Encoding: chunked"] if rng.random() < 0.5 else headers[-1:]
        size = pick(rng, (b"%x" % len(body), b"5", b"-1", b"fffffffffffffffff", b"zz", b"0"))
        body = size + b"\r\n" + body + b"\r\n0\r\n\r\n"
    whole = b"\r\n".join([method + b" " + path + b" " + version, *headers, b"", body])
    return damaged(rng, whole) if rng.random() < 0.08 else whole


def bad_body(rng, body: bytes) -> bytes:
    """A body with values replaced, damaged, or of nothing but noise."""
    what = rng.random()
    if what < 0.6:
        values = list(re.finditer(rb'(?<=: )("[^"]*"|[0-9.]+|null)|"[a-z]+"(?=:)', body))
        for value in values[:: -int(rng.integers(1, len(values) + 1))]:
            body = body[: value.start()] + pick(rng, VALUES) + body[value.end() :]
        return body
    if what < 0.85:
        return damaged(rng, body)
    noise = [
        rng.bytes(int(rng.integers(200))),
        pick(rng, HOSTILE),
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
    ]
    noise += [
        b"[" + b"{}," * 5000 + b"{}]",
        b" " * MOST_BYTES + b"{}",
        body.decode().encode("utf-16"),
    ]
    noise += [b"{" + b",".join(b'"a%d":1' % n for n in range(9000)) + b"}"]
    return pick(rng, noise)
