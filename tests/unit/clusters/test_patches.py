"""Patches without context lines: what they change, which files they are for, and those of the systems."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import clusters
from clusters.kit import mending
from clusters.kit.mending import Mends, numbered
from clusters.kit.patches import changed, changes
from harness.builds import Artifact, Provenance
from harness.errors import InfrastructureError

SOURCE = "one\ntwo\nthree\nfour"
PATH = "lib/src/main/java/a/B.java"
FOLDERS = sorted(Path(clusters.__path__[0]).glob("systems/*/patches"))
MOST_REMOVED = 3  # lines of the authors that a patch shows


def patch(*hunks: str, source: str = SOURCE) -> str:
    """Returns a patch of a file with hunks."""
    data = source.encode()
    blob = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()[:12]
    return f"diff --git a/{PATH} b/{PATH}\nindex {blob}..0123456 100644\n--- a/{PATH}\n+++ b/{PATH}\n{''.join(hunks)}"


def result(*patches: str, source: str = SOURCE) -> str:
    """Returns the file with patches."""
    return changed(source.encode(), [change for text in patches for change in changes(text)]).decode()


def test_all_patches_are_of_the_release() -> None:
    """Lines of later patches count in the released file, too; what is added at one place keeps the order."""
    first = patch("@@ -1,0 +2,2 @@ name\n+new\n+++ er\n", "@@ -3 +5 @@\n-three\n+drei\n")
    second = patch(
        "@@ -0,0 +1 @@\n+zero\n", "@@ -1,2 +1 @@\n-one\n-two\n", "@@ -4,0 +5 @@\n+ende\n", source=SOURCE + "\n"
    )
    assert result(first) == "one\nnew\n++ er\ntwo\ndrei\nfour"
    assert result(second, source=SOURCE + "\n") == "zero\nthree\nfour\nende\n"
    assert (
        result(first, patch("@@ -1,0 +2 @@\n+later\n", "@@ -2 +2 @@\n-two\n")) == "one\nnew\n++ er\nlater\ndrei\nfour"
    )
    (change,) = changes(first)
    assert (change.module, change.path) == ("lib", "a/B.java")


@pytest.mark.parametrize(
    ("patches", "why"),
    [
        ([patch("@@ -1 +1 @@\n-one\n+eins\n", source="other")], "the patch is for a/B.java"),
        ([patch("@@ -1 +1 @@\n-two\n+eins\n")], "the lines from 1 on"),
        ([patch("@@ -1,2 +1 @@\n-one\n-two\n"), patch("@@ -2 +2 @@\n-two\n+zwei\n")], "the lines from 2 on"),
        ([patch("@@ -1,2 +1 @@\n-one\n-two\n"), patch("@@ -1,0 +2 @@\n+new\n")], "the lines from 2 on"),
        ([patch("@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n")], "expected the head of a file"),
        (["Subject: a patch\n" + patch()], "expected the head of a file"),
    ],
)
def test_what_does_not_fit_is_an_error(patches: list[str], why: str) -> None:
    """Another file, other lines, lines that two patches change, and context lines are errors."""
    with pytest.raises(ValueError, match=why):
        result(*patches)


@pytest.mark.parametrize(
    "path", [path for folder in FOLDERS for path in sorted(folder.rglob("*")) if path.is_file()], ids=str
)
def test_a_patch_shows_few_lines_of_others(path: Path) -> None:
    """It has no context lines, its heads count its lines, and it removes few of them."""
    text = path.read_text(encoding="utf-8")
    hunks = [hunk for change in changes(text) for hunk in change.hunks]
    counts = [
        tuple(int(count or 1) for count in pair)
        for pair in re.findall(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", text, re.MULTILINE)
    ]
    assert [(len(hunk.removed), len(hunk.added)) for hunk in hunks] == counts != []
    assert sum(len(hunk.removed) for hunk in hunks) <= MOST_REMOVED


def test_a_patch_of_another_release_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file; the sources are those of the version of the program."""
    (tmp_path / "1.patch").write_text(patch("@@ -1 +1 @@\n-one\n+eins\n"))
    source = tmp_path / "a" / "B.java"
    source.parent.mkdir()
    source.write_text("other")
    asked = []

    def sources(coordinates: str, _: object) -> Path:
        asked.append(coordinates)
        return tmp_path

    monkeypatch.setattr(mending, "released_sources", sources)
    mends = Mends(
        software="Lib",
        texts={1: "it counts"},
        patches=numbered(tmp_path, [1]),
        sources={"lib": "org.example:lib:{version}"},
    )
    released = Artifact(path=tmp_path, provenance=Provenance(name="lib", version="1.2", digest="0"))
    with pytest.raises(InfrastructureError, match=r"the patches of a/B\.java do not fit the released sources"):
        mends.mended(released, "lib.jar", [1], print)
    assert asked == ["org.example:lib:1.2"]
