"""Foreign text in Markdown, which CI servers and code hosts show.

Names and reasons come from the system under test. GitHub and GitLab read markup, HTML, mentions (`@name`) and references (`#7`)
in Markdown. So each foreign text is in `<code>`, with its punctuation as character references.
"""

from __future__ import annotations

import re
from typing import Final

from harness.console.plain import name

MAX_REASON: Final = 300
_MARKUP: Final = re.compile(r"[^A-Za-z0-9 .,=/-]")


def quoted(text: str, max_length: int = MAX_REASON) -> str:
    """Returns a foreign text that no reader of Markdown takes for markup; a long one is cut, and its length is added."""
    return f"<code>{_MARKUP.sub(lambda match: f'&#{ord(match[0])};', name(text, max_length))}</code>"
