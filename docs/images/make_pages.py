"""Takes evaluate-page.png and annotate-page.png, the pictures of the pages that ordspan makes.

It runs what the guide prints, and needs Chromium. Run it from anywhere:
python docs/images/make_pages.py
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from urllib.request import Request, urlopen

import numpy as np
import polars as pl
from PIL import Image

HERE = Path(__file__).parent
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
N_ANSWERS = 90
POSE = """localStorage.setItem("ordspan.annotator", "Mira");
document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important }</style>");
const press = (key, shiftKey = false) => document.body.dispatchEvent(
  new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
setTimeout(() => { press("1"); press("ArrowRight", true); }, 2000);
"""
"""Runs before the page's own script: gives a name, and selects a range, at once."""


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page of the guide in a language; without one, they are commands."""
    text = (HERE.parent / page).read_text("utf-8")
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for word, block in found if word == language]


def ordspan(line: str) -> list[str]:
    """A printed command, for the Python that runs this."""
    return [sys.executable, "-m", *shlex.split(line)]


def photograph(address: str, name: str, size: tuple[int, int]) -> None:
    """A picture of a page, in few colours."""
    options = (f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=8000")
    subprocess.run([*CHROMIUM, *options, "--screenshot=page.png", address], check=True)
    picture = Image.open("page.png").convert("RGB").quantize(200)
    picture.save(HERE / name, optimize=True)


def take_evaluate() -> None:
    """The page of `ordspan evaluate --html` for the first model of the page on files."""
    exec(blocks("files.md", "python")[0], {})
    for line in blocks("files.md", "")[0].splitlines()[:2]:
        subprocess.run(ordspan(line), check=True)
    photograph(Path("patients.html").resolve().as_uri(), "evaluate-page.png", (985, 1390))


def ask(address: str, path: str, **body: object) -> dict:
    """What the service answers."""
    content = json.dumps({"annotator": "Mira", **body}).encode()
    return json.load(
        urlopen(Request(address + path, content, {"Content-Type": "application/json"}))
    )


def answer_some(address: str) -> None:
    """Answers by how many neighbours are alike, with ranges where that is not clear."""
    rng = np.random.default_rng(0)
    alike = pl.read_csv("digits.csv")["neighbours_alike"].to_numpy()
    for number in range(N_ANSWERS):
        item = ask(address, "/api/next")["item"]
        doubt = rng.normal(scale=1.5, size=2)
        lower, upper = sorted((1 + np.searchsorted([5, 10, 14], alike[item] + doubt)).tolist())
        ask(address, "/api/answer", key=f"{number}", item=item, lower=lower, upper=upper, seconds=4)


def stand_between(address: str) -> ThreadingHTTPServer:
    """A server that passes everything on, and puts POSE before the script of the page."""

    class Between(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            kept = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            with urlopen(Request(address + self.path, body, kept)) as answer:
                text, kind = answer.read(), answer.headers["Content-Type"]
            if self.path == "/static/annotate.js":
                text = POSE.encode() + text
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Between)


def take_annotate() -> None:
    """The page of `ordspan annotate`, after some answers."""
    exec(blocks("annotating.md", "python")[0], {})
    line = blocks("annotating.md", "")[0].replace("\\\n", " ")
    command = [*ordspan(line), "--guess", "show", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = next(filter(None, (re.search(r"http://\S+:\d+", x) for x in process.stdout)))
        answer_some(found[0])
        server = stand_between(found[0])
        Thread(target=server.serve_forever, daemon=True).start()
        photograph(f"http://127.0.0.1:{server.server_port}", "annotate-page.png", (900, 780))
        server.shutdown()
        process.terminate()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        take_evaluate()
        take_annotate()
        time.sleep(1)  # until the service has closed its folder
