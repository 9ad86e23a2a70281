"""Writes docs/reference/system-reference.md from the docstrings: `python tools/system_reference.py`.

A test compares the page with what this module makes, so the page is never older than the code.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from harness.builds import Artifact, Build, Provenance
from harness.client import Client, RoutedClient
from harness.daemon import Daemon
from harness.service import NodeStatus, ReplicaState, Service
from harness.system import OneServiceSystem, System
from harness.traits import LogLine, Program

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "system-reference.md"
CLASSES = (
    System, Service, OneServiceSystem, Daemon, NodeStatus, ReplicaState, LogLine, Program, Build, Artifact, Provenance,
    Client, RoutedClient,
)  # fmt: skip
BEGINNING = """\
Look up here what a [system of your own](../guide/new-system.md) can define, and what it describes or returns.
`python tools/system_reference.py` writes this page from the docstrings in `harness/system.py`, `harness/service.py`,
`harness/traits.py`, `harness/daemon.py`, `harness/builds.py` and `harness/client.py`.

A system with one service derives from `OneServiceSystem`, and has the members of `System` and of `Service`. It defines `name`,
`role`, `serves`, and the methods that say so, but not `services`. Labrys calls the blocking
methods in threads, for several nodes at the same time. It awaits the `async` ones in its event loop, so they must not block.
"""
WIDTH = 140
SECTION = re.compile(r"(Attributes|Args|Returns|Yields|Raises):")
ITEM = re.compile(r"(\w+): (.*)")
INDENT = " " * 4


def page() -> str:
    """Returns the page."""
    parts = [part for cls in CLASSES for part in describe(cls)]
    return "\n".join(["# The members of a system", "", *paragraphs(BEGINNING), *parts]).rstrip() + "\n"


def describe(of: type) -> list[str]:
    """Returns the lines about a class: its text, its attributes and its methods."""
    text, sections = parse(of)
    lines = [f"## {of.__name__}", "", f"`from {of.__module__} import {of.__name__}`", "", *paragraphs(text)]
    attributes = sections.get("Attributes", [])
    if attributes:
        lines += ["| attribute | type | default | meaning |", "|---|---|---|---|"]
        for name, said in items(attributes):
            lines.append(f"| `{name}` | {_type(of, name)} | {_default(of, name)} | {_cell(said)} |")
        lines.append("")
    for name, method in _methods(of):
        text, sections = parse(method)
        must = " **You define it.**" if getattr(method, "__isabstractmethod__", False) else ""
        lines += [f"### `{_signature(name, method)}`", "", *paragraphs(text.rstrip() + must)]
        for title, word in (("Args", ""), ("Raises", "raises ")):
            lines += [f"- {word}`{item}`: {said}" for item, said in items(sections.get(title, []))]
        for title in ("Returns", "Yields"):
            if title in sections:
                lines.append(f"- {title.lower()}: {' '.join(' '.join(sections[title]).split())}")
        if lines[-1]:
            lines.append("")
    return lines


def parse(of: Any) -> tuple[str, dict[str, list[str]]]:
    """Returns the text of a docstring before its sections, and the lines of each section."""
    text: list[str] = []
    sections: dict[str, list[str]] = {}
    into = text
    for line in inspect.cleandoc(of.__doc__ or "").splitlines():
        title = SECTION.fullmatch(line)
        if title:
            into = sections.setdefault(title[1], [])
        elif line and into is not text and not line.startswith(INDENT):
            into = text
            text.append(line)
        else:
            into.append(line)
    return "\n".join(text), sections


def items(lines: list[str]) -> list[tuple[str, str]]:
    """Returns the named items of a section, each in one line."""
    entries: list[tuple[str, str]] = []
    for line in lines:
        begun = ITEM.fullmatch(line.removeprefix(INDENT)) if not line.startswith(INDENT * 2) else None
        if begun:
            entries.append((begun[1], begun[2]))
        elif line.strip():
            name, said = entries[-1]
            entries[-1] = name, f"{said} {line.strip()}"
    return entries


def paragraphs(text: str) -> list[str]:
    """Returns the lines of the paragraphs of a text, with an empty line after each."""
    filled = (textwrap.fill(paragraph, WIDTH, break_on_hyphens=False) for paragraph in re.split(r"\n\n+", text.strip()))
    return [line for paragraph in filled for line in (paragraph, "")]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _type(of: type, name: str) -> str:
    own = {**inspect.get_annotations(vars(of).get("__init__", of)), **inspect.get_annotations(of)}
    annotation = str(own.get(name, ""))
    inner = re.fullmatch(r"ClassVar\[(.*)\]", annotation)
    return _code(inner[1] if inner else annotation) if annotation else ""


def _default(of: type, name: str) -> str:
    if dataclasses.is_dataclass(of):
        (field,) = (candidate for candidate in dataclasses.fields(of) if candidate.name == name)
        if field.default_factory is not dataclasses.MISSING:
            return _code(repr(field.default_factory()))
        return "" if field.default is dataclasses.MISSING else _code(repr(field.default))
    if name not in vars(of):
        return ""
    value = vars(of)[name]
    return _code(value.__name__ if isinstance(value, type) else repr(value))


def _methods(of: type) -> list[tuple[str, Any]]:
    """Returns the public methods of a class in the order of its source, those that must be defined first."""
    methods = [
        (name, function)
        for name, value in vars(of).items()
        if not name.startswith("_") and inspect.isfunction(function := _function(value))
    ]
    return sorted(methods, key=lambda method: not getattr(method[1], "__isabstractmethod__", False))


def _function(value: Any) -> Any:
    """Returns the function of a class method or of a property; another value unchanged."""
    return value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def _signature(name: str, method: Any) -> str:
    parameters = []
    star = False
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            parameters.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{parameter.name}: {parameter.annotation}{default}")
    asynchronous = "async " if inspect.iscoroutinefunction(method) else ""
    return f"{asynchronous}{name}({', '.join(parameters)}) -> {method.__annotations__.get('return')}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
