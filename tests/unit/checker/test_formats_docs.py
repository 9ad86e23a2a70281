"""docs/reference/formats.md matches the code."""

from __future__ import annotations

import re
from pathlib import Path

from checker.checking import conventions_of
from checker.edn.reader import MAX_DEPTH
from checker.edn.tokens import MAX_TOKEN_CHARACTERS
from checker.formats.conventions import MEMBER, WORDS
from checker.formats.jepsen_reader import KEYS
from checker.formats.parquet import COLUMNS, FORMAT, VERSION
from checker.formats.readers import EDN
from harness.event_lines import FORMAT as HISTORY_FORMAT
from harness.event_lines import MAX_LINE_BYTES, decode_event
from harness.event_lines import VERSION as HISTORY_VERSION
from harness.values import MAX_NESTING

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "formats.md"


def rows(section: str) -> list[list[str]]:
    """Returns the cells of the first table of a section, without its head."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    table = re.findall(r"^\|(.*)\|$", text.partition("\n## ")[0], re.MULTILINE)
    return [[cell.strip() for cell in row.split(" | ")] for row in table[2:]]


def test_columns_of_operations_parquet() -> None:
    """Names, order, types and nullability."""
    kinds = {"string": "string", "name": "string", "int64": "int64"}
    documented = [(cells[0].strip("`"), cells[1], cells[2]) for cells in rows("operations.parquet")]
    assert documented == [(column.name, kinds[column.kind], "yes" if column.nullable else "no") for column in COLUMNS]
    assert f"`labrys.format` is `{FORMAT}`, `labrys.version` is `{VERSION}`" in " ".join(DOCUMENT.read_text().split())


def test_members_of_history_jsonl() -> None:
    """An event with every documented member is read. The header is the documented one."""
    examples = {"integer": 0, "string": "x", "any": [1], 'integer, or `"nemesis"`': 0}
    event = {cells[0].strip("`"): examples[cells[1]] for cells in rows("history.jsonl")} | {"type": "ok"}
    assert decode_event(event, 0).phase == "x"
    assert f'{{"format":"{HISTORY_FORMAT}","version":{HISTORY_VERSION},' in DOCUMENT.read_text()


def test_keys_of_edn() -> None:
    """The documented keys are those of the reader."""
    documented = {key for cells in rows("EDN") for key in re.findall(r"`:([a-z]+)`", cells[0])}
    assert documented == {key.name for key in KEYS}


def test_bounds() -> None:
    """The documented bounds are those of the reader."""
    assert MAX_DEPTH == MAX_NESTING == 128
    assert MAX_TOKEN_CHARACTERS == MAX_LINE_BYTES == 16 << 20


def test_conventions_of_edn() -> None:
    """The documented names and words are those of the reader, and the default is that of EDN."""
    documented = {}
    for name, words, missing in rows("Conventions"):
        convention = name.strip("`").removeprefix(":").replace("-", "_")
        if convention != "keyed":
            documented[convention] = tuple(re.findall(r"`:([a-z]+)`", words))
            assert missing.strip("`").removeprefix(":") == conventions_of(EDN)[convention]
    assert documented == dict(WORDS)
    assert f"`{MEMBER}`" in {cells[0] for cells in rows("EDN")}
