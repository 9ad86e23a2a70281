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
from msgspec.inspect import DataclassType, StructType

from results.record.forms import Results
from results.stored.document import VERSION

SCHEMA = Path(__file__).parents[1] / "docs" / "reference" / "results.schema.json"
WIDTH = 140
ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


def schema() -> dict[str, Any]:
    """Returns the schema. An object has no members beside those of its type, and the docstrings become descriptions."""
    _, types = msgspec.json.schema_components([Results], ref_template="#/$defs/{name}")
    kinds = members_of(msgspec.inspect.type_info(Results))
    for name, kind in kinds.items():
        types[name] = described(types[name], kind)
    whole = types.pop("Results")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"labrys-results-{VERSION}",
        "title": "results.json of a Labrys run",
    }
    return {**head, **whole, "$defs": types}


def members_of(form: Any) -> dict[str, Any]:
    """Returns each dataclass and struct in a type, as `msgspec.inspect` describes it, by its name."""
    kinds: dict[str, Any] = {}
    left = [form]
    while left:
        member = left.pop()
        if isinstance(member, msgspec.inspect.Field):
            left.append(member.type)
        elif isinstance(member, DataclassType | StructType):
            if member.cls.__name__ not in kinds:
                kinds[member.cls.__name__] = member
                left += member.fields
        elif isinstance(member, msgspec.inspect.Type):
            inner = (getattr(member, name) for name in member.__struct_fields__)
            left += (part for one in inner for part in (one if isinstance(one, tuple) else (one,)))
    return kinds


def described(schema: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Returns the schema of a type, with the sections `Attributes` of its docstring and of its bases' as descriptions.

    A document has all members but those that are unset.
    """
    words: dict[str, str] = {}
    for base in reversed(kind.cls.__mro__):
        _, _, attributes = inspect.cleandoc(base.__doc__ or "").partition("\n\nAttributes:\n")
        words |= {name: in_json(text) for name, text in ATTRIBUTE.findall(attributes)}
    members = {
        name: {
            **{key: value for key, value in member.items() if key != "default"},
            **({"description": words[name]} if name in words else {}),
        }
        for name, member in schema["properties"].items()
    }
    tagged = isinstance(kind, StructType) and kind.tag is not None
    return {
        "description": in_json(inspect.cleandoc(kind.cls.__doc__).partition("\n\nAttributes:\n")[0]),
        "type": "object",
        "additionalProperties": False,
        "required": [
            *([kind.tag_field] if tagged else []),
            *(field.name for field in kind.fields if field.required or has_default(field)),
        ],
        "properties": members,
    }


def has_default(field: msgspec.inspect.Field) -> bool:
    """Returns whether a member has a value in any case."""
    return field.default is not msgspec.NODEFAULT or field.default_factory is not msgspec.NODEFAULT


def in_json(text: str) -> str:
    """Returns a text of a docstring in one line, with the words of JSON."""
    return " ".join(text.replace("None", "null").split())


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
        return "[\n" + ",\n".join(inner + printed(member, inner) for member in value) + f"\n{indent}]"
    members = (f"{inner}{json.dumps(name)}: {printed(member, inner)}" for name, member in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
