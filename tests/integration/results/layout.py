"""Finds what a page cuts off, puts on top of each other, or squeezes: by the boxes of the page in a browser, not by eye.

The rules, for the page as it opens, with all of its details open:

- Neither the page nor a part of it scrolls sideways. Only a text of fixed lines may, and a picture that says so (`data-pans`);
  such a picture opens with the name of a node in view.
- Each text is within the block, the cell or the picture that it belongs to, and no text lies on another one.
- A long text in a cell has at least `LEAST_CHARACTERS` in the mean of its lines.
- In the picture of a counterexample, no name of an operation lies in a band or a bar.
- In a picture of moments, no mark covers a text. A cell of a table does not break a text of a few characters.
- The timeline opens with all of its lanes in view.
- A link in a head that a narrow table hides stands somewhere else, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.integration.results.browser import Browser

LEAST_CHARACTERS = 18
_SCRIPT = Path(__file__).with_name("layout.js")


def faults_of_layout(browser: Browser) -> list[str]:
    """Returns a sentence for each thing that the open page cuts off, covers or squeezes."""
    faults: list[str] = browser.evaluate(f"({_SCRIPT.read_text(encoding='utf-8')})({LEAST_CHARACTERS})")
    return faults
