"""What the README and the pages print in fenced blocks."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def blocks(page, language=""):
    """The blocks of a page in a language, by default those without one, their long lines joined."""
    text = (ROOT / page).read_text("utf-8")
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block.replace("\\\n", " ") for kind, block in found if kind == language]
