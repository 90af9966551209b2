"""Pages of one file in a real browser: what is found when all is tried."""

import re

BEFORE = """<script>
window.problems = [];
window.addEventListener("error", event => problems.push(String(event.message)));
window.addEventListener("unhandledrejection", event => problems.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", e => problems.push("blocked " + e.blockedURI));
for (const kind of ["error", "warn"]) console[kind] = (...words) => problems.push(words.join(" "));
</script>"""

HELP = """
const frame = () => new Promise(done => requestAnimationFrame(done));
const settle = () => frame().then(frame).then(() => new Promise(done => setTimeout(done, 20)));
const count = (selector, root = document) => root.querySelectorAll(selector).length;
"""

TRY = """
tryEverything().catch(error => ({ failed: String(error) })).then(found => ({ ...found, problems,
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  requests: performance.getEntriesByType("resource").map(entry => entry.name)
    .filter(name => !name.startsWith("data:")),
}))
"""


def try_page(tab, page, script, folder, width):
    """What the function ``tryEverything`` of a script finds on a page in a window so wide."""
    head, _, rest = page.partition("<head>")
    body, _, tail = rest.rpartition("</body>")
    tried = folder / "tried.html"
    whole = f"<script>{HELP}{script}</script>"
    tried.write_text(f"{head}<head>{BEFORE}{body}{whole}</body>{tail}", "utf-8")
    tab.resize(width, 900)
    tab.open(tried.as_uri())
    return tab.run(TRY)


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
