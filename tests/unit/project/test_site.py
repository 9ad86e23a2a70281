"""The pages of the documentation, in `docs` and in the folders of the systems, and where they stand on the site."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath
from types import SimpleNamespace
from typing import Any

import pytest

from tools import site

ROOT = Path(__file__).parents[3]
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
OWN_ANCHOR = re.compile(r'<a id="([^"]+)">')
TARGET = re.compile(r"\]\(([^)\s]+)\)")
ONE, OTHER, *_ = sorted(path.parent.name for path in (ROOT / site.SYSTEMS).glob("*/system.py"))
PAGE = f"{site.SYSTEMS}/{ONE}/README.md"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    """Returns the text of a page without its blocks of code."""
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def anchors(page: str) -> set[str]:
    """Returns the anchors of a page: its own, and those that GitHub and MkDocs make of its headings."""
    headings = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(text_of(page)))
    return set(OWN_ANCHOR.findall(text_of(page))) | {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", [*site.pages(), "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_each_link_leads_to_a_file_and_a_heading(page: str) -> None:
    """In the repository, where a reader of the code or of GitHub follows it."""
    for target in TARGET.findall(text_of(page)):
        path, _, anchor = target.partition("#")
        if ":" in path:
            continue
        leads_to = normpath(join(dirname(page), path)) if path else page
        assert (ROOT / leads_to).is_file() or (ROOT / leads_to).is_dir(), target
        assert not anchor or anchor in anchors(leads_to), target


def test_each_system_has_a_page() -> None:
    """The folder of a system has a README.md, and it comes first of its pages."""
    folders = {path.parent.name for path in (ROOT / site.SYSTEMS).glob("*/system.py")}
    assert len(folders) > 10
    first = {path.split("/")[2]: path for path in reversed(site.pages_of_systems())}
    assert first == {folder: f"{site.SYSTEMS}/{folder}/README.md" for folder in folders}


def test_the_site_has_each_page_once() -> None:
    """No page of a system stands where a page of `docs` does, and the navigation has all pages of the systems."""
    places = [site.site_path(page) for page in site.pages()]
    assert len(set(places)) == len(places)
    config: dict[str, list[dict[str, Any]]] = {"nav": [{"Labrys": "index.md"}, {"Systems": ["reference/systems.md"]}]}
    site.on_config(config)
    overview, *systems = config["nav"][1]["Systems"]
    assert overview == "reference/systems.md"
    assert [path for entry in systems for paths in entry.values() for path in paths] == [
        site.site_path(page) for page in site.pages_of_systems()
    ]


@pytest.mark.parametrize(
    ("page", "link", "on_the_site"),
    [
        ("docs/index.md", "clusters.md#ssh", "clusters.md#ssh"),
        ("docs/index.md", f"../{PAGE}", f"systems/{ONE}/README.md"),
        ("docs/decisions/README.md", f"../../{PAGE}#options", f"../systems/{ONE}/README.md#options"),
        (PAGE, "../../../docs/index.md", "../../index.md"),
        (PAGE, f"../{OTHER}/README.md", f"../{OTHER}/README.md"),
        (PAGE, "https://example.org/docs/", "https://example.org/docs/"),
        (PAGE, "#options", "#options"),
    ],
)
def test_a_link_is_written_for_the_site(page: str, link: str, on_the_site: str) -> None:
    """Pages of systems stand beside those of `docs` there."""
    of = SimpleNamespace(file=SimpleNamespace(abs_src_path=str(ROOT / page)))
    assert site.on_page_markdown(f"see [it]({link}).", of) == f"see [it]({on_the_site})."
