"""The books of `docs/`: texts name pages that exist, and the two books that users read stay short.

`test_site.py` follows their links.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import cli

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
BOOKS = ("guide", "reference", "journal")
LIMIT = 90_000  # words of the guide and the reference together; what was measured belongs to the journal

NAMED = re.compile(r"(?<![\w/.-])docs/(?:(?:guide|reference|journal|decisions)/)?[\w.-]+\.(?:md|json)\b")


def test_each_page_that_a_text_names_exists() -> None:
    """Messages, helps, docstrings and comments send a user to `docs/BOOK/PAGE.md`."""
    files = subprocess.run(
        ["git", "grep", "-lI", "docs/"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    lost = {}
    for file in files:
        text = re.sub(r"https?://\S+", "", (ROOT / file).read_text(encoding="utf-8"))
        names = set(NAMED.findall(text))
        if missing := [name for name in names if not (ROOT / name).exists()]:
            lost[file] = missing
    assert lost == {}


def test_the_guide_and_the_reference_stay_short() -> None:
    """A word is what spaces separate, as `wc -w` counts."""
    words = {
        book: sum(len(page.read_text(encoding="utf-8").split()) for page in (DOCS / book).rglob("*.md"))
        for book in ("guide", "reference")
    }
    assert sum(words.values()) <= LIMIT, words


def test_the_site_shows_three_books() -> None:
    """They are parts of the navigation, which names each of their pages once."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    parts = re.findall(r"^  - (\w+):", navigation, re.MULTILINE)
    assert [name.lower() for name in parts if name.lower() in BOOKS] == list(BOOKS)
    for book in BOOKS:
        named = re.findall(rf"\b{book}/[\w.-]+\.md", navigation)
        assert sorted(named) == sorted(f"{book}/{page.name}" for page in (DOCS / book).glob("*.md"))


@pytest.mark.parametrize("book", ["guide", "reference"])
def test_each_page_begins_with_its_purpose(book: str) -> None:
    """After its title stands a paragraph, not a table, a list or a second heading."""
    for page in (DOCS / book).glob("*.md"):
        title, beginning = page.read_text(encoding="utf-8").split("\n\n")[:2]
        assert title.startswith("# "), page
        assert re.match(r"[A-Z`\[]", beginning), page


def test_the_page_of_commands_has_each_command() -> None:
    """Below the heading that `labrys --help` has it below."""
    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    for heading, commands in cli.GROUPS.items():
        section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        first = "".join(row.split("|")[1] for row in re.findall(r"^\| `labrys .*", section, re.MULTILINE))
        assert {name for name in commands if not re.search(rf"`(?:labrys )?{name}\b", first)} == set(), heading


@pytest.mark.parametrize("page", sorted((DOCS / "journal").glob("*.md")), ids=lambda page: page.name)
def test_each_section_of_the_journal_has_its_date(page: Path) -> None:
    """A figure without a date says nothing about the machine and the code of now."""
    for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
        assert re.match(r".*\n\n\*Written \d{4}-\d\d-\d\d( to \d{4}-\d\d-\d\d)?\.\*\n", section), section[:60]
