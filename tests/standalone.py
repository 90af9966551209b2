"""Pages of one file: what a browser finds when all is tried, and what they must not need."""

import re

HELP = """
const frame = () => new Promise(done => requestAnimationFrame(done));
const settle = () => frame().then(frame).then(() => new Promise(done => setTimeout(done, 20)));
const count = (selector, root = document) => root.querySelectorAll(selector).length;
"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def try_page(browser, page, script, width, **looks):
    """What the function ``tryEverything`` of a script finds on a page in a window so wide."""
    problems, requests = [], []
    with browser.new_context(viewport={"width": width, "height": 900}, **looks) as context:
        tab = context.new_page()
        tab.on("console", lambda message: problems.append(message.text))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.set_content(page)
        found = tab.evaluate(f"{HELP}{script}; tryEverything()")
        overflow = tab.evaluate(OVERFLOW)
    requests = [url for url in requests if not url.startswith("data:")]
    return found | {"problems": problems, "requests": requests, "overflow": overflow}


def check_stands_alone(page):
    """Nothing is fetched, and no place of the template is left open."""
    own = re.sub(r"<script>/\*\*.*?</script>", "", page, count=1, flags=re.DOTALL)
    assert len(own) < 1_000_000
    assert set(re.findall(r"""(?:src|href)\s*=\s*["']?(\w+:?)""", own)) == {"data:"}
    assert "http://" not in own
    assert "https://" not in own
    assert "{{" not in own
