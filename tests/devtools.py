"""A real Chromium driven over a DevTools pipe: mouse, touch and keys as a person's."""

import base64
import json
import os
import shutil
import signal
import socket
import time
from contextlib import suppress

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)
KEY_CODES = {
    "Enter": 13,
    "Escape": 27,
    "Tab": 9,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    " ": 32,
}
TYPED = {"Enter": "\r"}  # the text of a key that is not its name
MODIFIERS = {"Control": 2, "Shift": 8}


class BrowserError(AssertionError):
    """A command or an expression that failed."""


class Browser:
    """A browser with an empty profile; closed by leaving its ``with``."""

    def __init__(self, profile):
        if CHROMIUM is None:
            pytest.skip("no chromium, chromium-browser or google-chrome on the path")
        ours, theirs = socket.socketpair()
        ours.settimeout(60)
        log = os.fspath(profile) + ".log"
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 3),  # where Chromium reads commands
            (os.POSIX_SPAWN_DUP2, 3, 4),  # and writes answers
            (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT, 0o600),
        ]
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
        self.pid = os.posix_spawn(CHROMIUM, command, os.environ, file_actions=actions)
        theirs.close()
        self._socket, self._stream = ours, ours.makefile("rb")
        self._rest, self._last_id = b"", 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        try:
            self.call("Browser.close")
        except OSError:
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._stream.close()
        self._socket.close()

    def call(self, method, session=None, **params):
        """The result of one command; events that come before it are kept."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._socket.sendall(json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last_id:
            self.events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _read(self):
        while b"\0" not in self._rest:
            more = self._stream.read1(1 << 20)
            if not more:
                raise ConnectionError("Chromium ended")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


class Page:
    """One tab, without the storage of one that was closed: where a person clicks and types."""

    def __init__(self, browser, width=1200, height=900, dark=False, touch=False):
        self.browser, self._address = browser, "about:blank"
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.resize(width, height, touch)

    def resize(self, width, height, mobile=False):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def close(self):
        origin = "/".join(self._address.split("/")[:3])
        self.call("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
        self.browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method, **params):
        return self.browser.call(method, self._session, **params)

    def open(self, address):
        self._address = address
        self.call("Page.bringToFront")  # a tab in the background draws nothing
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def reload(self, leave=False):
        """Load the page again, by default without a question whether to ``leave``."""
        self.run("window.old = true; setTimeout(() => location.reload()); 0")
        for _ in range(500 if leave else 0):  # until the question is there
            with suppress(BrowserError):
                self.call("Page.handleJavaScriptDialog", accept=True)
                break
            time.sleep(0.02)
        else:
            assert not leave, "the page did not ask whether to leave"
        self.wait_for("!window.old && document.readyState === 'complete'")

    def run(self, expression):
        """The value of an expression of JavaScript, awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise BrowserError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def wait_for(self, condition, seconds=15):
        """Wait until an expression is true, or fail with what the page shows."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(BrowserError):  # the page may be on its way to another
                if self.run(condition):
                    return
            time.sleep(0.02)
        shown = self.run("document.body.innerText")
        raise AssertionError(f"never true: {condition}\nthe page:\n{shown}")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def visible(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).checkVisibility()")

    def middle(self, selector):
        """Where a person would touch an element, scrolled into view."""
        return self.run(
            f"""(() => {{ const place = document.querySelector({json.dumps(selector)});
            place.scrollIntoView({{ block: "nearest", behavior: "instant" }});
            const box = place.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
        )

    def press(self, *keys):
        """Press keys one after the other; ``"Shift+ArrowRight"`` with another held."""
        for key in keys:
            held, _, name = key.rpartition("+") if len(key) > 1 else ("", "", key)
            modifiers = MODIFIERS[held] if held else 0
            typed = TYPED.get(name, name if len(name) == 1 and held != "Control" else "")
            code = KEY_CODES.get(name, ord(name.upper()) if len(name) == 1 else 0)
            press = {"key": name, "modifiers": modifiers, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=typed, **press)
            self.call("Input.dispatchKeyEvent", type="keyUp", **press)

    def hold(self, key, times):
        """Hold a key down so long that it repeats."""
        press = {"key": key, "windowsVirtualKeyCode": KEY_CODES.get(key, ord(key[0].upper()))}
        typed = TYPED.get(key, key if len(key) == 1 else "")
        for count in range(times):
            self.call(
                "Input.dispatchKeyEvent",
                type="keyDown",
                text=typed,
                autoRepeat=count > 0,
                **press,
            )
            time.sleep(0.03)
        self.call("Input.dispatchKeyEvent", type="keyUp", **press)

    def paint(self):
        """Wait until what the page has changed is drawn and at rest: fingers aim at what is."""
        self.run(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"
            ".then(() => Promise.race([new Promise(done => setTimeout(done, 1000)),"
            " Promise.allSettled(document.getAnimations().map(one => one.finished))]))"
            ".then(() => 0)"
        )

    def drag(self, start, end, steps=8):
        """Drag with the mouse; without a way to go it is a click."""
        self.paint()
        self._mouse("mousePressed", *start)
        for step in range(1, steps + 1) if start != end else ():
            self._mouse("mouseMoved", *between(start, end, step / steps))
        self._mouse("mouseReleased", *end)

    def _mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def click(self, selector):
        point = self.middle(selector)
        self.drag(point, point)

    def tap(self, selector):
        self.paint()
        self._touch("touchStart", self.middle(selector))
        self._touch("touchEnd")

    def swipe(self, start, end, steps=8):
        """Drag with a finger."""
        self.paint()
        self._touch("touchStart", start)
        for step in range(1, steps + 1):
            self._touch("touchMove", between(start, end, step / steps))
        self._touch("touchEnd")

    def _touch(self, kind, *points):
        places = [{"x": x, "y": y} for x, y in points]
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=places)

    def screenshot(self, path, whole=False):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def problems(self):
        """Errors and warnings of the console so far, as (source, text)."""
        self.run("0")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self._session:
                continue
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(("exception", details.get("exception", details).get("description")))
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] != "log":
                found.append(("console", str(params["args"])))
            elif event["method"] == "Log.entryAdded":
                entry = params["entry"]
                found.append((entry["source"], entry["text"] + " " + entry.get("url", "")))
        return found


def between(start, end, share):
    return [a + (b - a) * share for a, b in zip(start, end, strict=True)]
