"""Where the pages of the documentation stand: in `docs`, and those of one system in its folder.

MkDocs calls this module (`hooks` in mkdocs.yml). It reads `docs` only, so it gets the pages of the systems here, as
`systems/FOLDER/...`. The links of all pages are those of the repository, where GitHub follows them. So each link to a page that
stands elsewhere on the site is written again.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = "docs"
SYSTEMS: Final = "clusters/systems"
SHOWN: Final = ("*.md", "findings/*.md", "findings/upstream/*.md")  # of the folder of a system
# What pages show or link.
FILES: Final = ("images/*.svg", "findings/images/*.svg", "patches/*.patch", "patches/*/*.patch")
LINK: Final = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
OVERVIEW: Final = "reference/systems.md"  # before the pages of the systems
FIRST: Final = "README.md"


def pages() -> list[str]:
    """Returns the paths of all pages, from the root of the repository."""
    return [*_paths(DOCS, ("**/*.md",)), *pages_of_systems()]


def pages_of_systems() -> list[str]:
    """Returns the paths of the pages that stand in the folder of a system: of each folder, README.md comes first."""
    paths = _paths(SYSTEMS, tuple(f"*/{pattern}" for pattern in SHOWN))
    return sorted(paths, key=lambda path: (path.split("/")[2], path.count("/"), Path(path).name != FIRST, path))


def site_path(path: str) -> str:
    """Returns where a page or a file of the repository stands on the site."""
    return path.partition("/")[2]


def _paths(folder: str, patterns: tuple[str, ...]) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for pattern in patterns for path in (ROOT / folder).glob(pattern))


def relinked(text: str, page: str) -> str:
    """Returns the text of a page with the links that its place on the site needs."""
    own = site_path(page)

    def link(match: re.Match[str]) -> str:
        target = normpath(join(dirname(page), match[2]))
        if not target.startswith((f"{DOCS}/", f"{SYSTEMS}/")):
            return match[0]
        return f"{match[1]}{relpath(site_path(target), dirname(own) or '.')}{match[3]}"

    return LINK.sub(link, text)


def navigation() -> list[Any]:
    """Returns the entries of the systems: for each folder its pages, and the reports for its authors below them."""
    entries: dict[str, list[Any]] = {}
    for path in pages_of_systems():
        entries.setdefault(path.split("/")[2].replace("_", "-"), []).append(site_path(path))
    return [OVERVIEW, *({name: paths} for name, paths in entries.items())]


def on_config(config: Any) -> Any:
    """Puts the pages of the systems into the navigation, where mkdocs.yml has the overview alone."""
    for entry in config["nav"]:
        for title, paths in entry.items():
            if paths == [OVERVIEW]:
                entry[title] = navigation()
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages of the systems, and the files that they show or link."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - other tools read the pages without MkDocs

    linked = _paths(SYSTEMS, tuple(f"*/{pattern}" for pattern in FILES))
    for path in (*pages_of_systems(), *linked):
        files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Writes the links of a page for its place on the site."""
    return relinked(markdown, str(Path(page.file.abs_src_path).relative_to(ROOT)))
