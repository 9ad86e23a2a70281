"""Writes docs/reference/results.schema.json from the types of `results.record.forms`: `python tools/results_schema.py`.

A test compares the schema with what this module makes, so the schema is never older than the code.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from results.record.forms import Results

SCHEMA = Path(__file__).parents[1] / "docs" / "reference" / "results.schema.json"
WIDTH = 140
ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


def schema() -> dict[str, Any]:
    """Returns the schema. An object has no members beside those of its type, and the docstrings become descriptions."""
    _, types = msgspec.json.schema_components([Results], ref_template="#/$defs/{name}")
    for name, each in types.items():
        types[name] = described(each)
    whole = types.pop("Results")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "labrys-results-2",
        "title": "results.json of a Labrys run",
    }
    return {**head, **whole, "$defs": types}


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a type, with the section `Attributes` of its docstring as descriptions of its members."""
    text, _, attributes = inspect.cleandoc(schema["description"]).partition("\n\nAttributes:\n")
    words = {name: " ".join(words.split()) for name, words in ATTRIBUTE.findall(attributes)}
    members = {
        name: {**member, **({"description": words[name]} if name in words else {})}
        for name, member in schema["properties"].items()
    }
    return {
        "description": " ".join(text.split()),
        "type": "object",
        "additionalProperties": False,
        "required": schema.get("required", []),
        "properties": members,
    }


def text() -> str:
    """Returns the schema as the file has it."""
    return printed(schema()) + "\n"


def printed(value: Any, indent: str = "") -> str:
    """Returns JSON in which an object or a list that fits is on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + printed(each, inner) for each in value) + f"\n{indent}]"
    members = (f"{inner}{json.dumps(name)}: {printed(each, inner)}" for name, each in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
