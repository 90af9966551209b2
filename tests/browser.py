"""A real browser for the tests of pages; they skip where there is none."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=20000",
    "--dump-dom",
)

BEFORE = """<script>
window.problems = [];
window.addEventListener("error", event => problems.push(String(event.message)));
window.addEventListener("unhandledrejection", event => problems.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", e => problems.push("blocked " + e.blockedURI));
for (const kind of ["error", "warn"]) console[kind] = (...words) => problems.push(words.join(" "));
</script>"""

HELP = """
const settle = () => new Promise(done => setTimeout(done, 100));
const count = (selector, root = document) => root.querySelectorAll(selector).length;
"""

AFTER = """
tryEverything().catch(error => ({ failed: String(error) })).then(found => {
  found.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  found.requests = performance.getEntriesByType("resource").map(entry => entry.name)
    .filter(name => !name.startsWith("data:"));
  const place = document.body.appendChild(document.createElement("pre"));
  place.id = "outcome";
  place.textContent = JSON.stringify({ ...found, problems });
});
"""


def try_page(page, script, folder, width):
    """What the function ``tryEverything`` of a script finds on a page in a window so wide."""
    if CHROMIUM is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the path")
    head, _, rest = page.partition("<head>")
    body, _, tail = rest.rpartition("</body>")
    tried = folder / "tried.html"
    whole = f"<script>{HELP}{script}{AFTER}</script>"
    tried.write_text(f"{head}<head>{BEFORE}{body}{whole}</body>{tail}", "utf-8")
    size = f"--window-size={width},900"
    command = [CHROMIUM, *FLAGS, size, f"--user-data-dir={folder / 'profile'}", tried.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=180, check=True)
    dom = done.stdout.decode("utf-8")
    return json.loads(unescape(re.search(r'<pre id="outcome">(.*?)</pre>', dom, re.DOTALL)[1]))


def own_part(page):
    """A page without plotly.js."""
    return re.sub(r"<script>/\*\*.*?</script>", "", page, count=1, flags=re.DOTALL)


def check_stands_alone(page):
    """Plotly is inlined once, nothing is fetched, and no place of the template is left open."""
    assert page.count("* plotly.js v") == 1
    own = own_part(page)
    assert len(own) < 2_000_000
    assert set(re.findall(r"""(?:src|href)\s*=\s*["']?(\w+:?)""", own)) == {"data:"}
    assert "http://" not in own
    assert "https://" not in own
    assert "{{" not in own
