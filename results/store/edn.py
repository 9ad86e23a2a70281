"""`results.edn`: the document of `results.json` with the keywords of Jepsen.

`:valid?` is true, false or `:unknown`. Names are keywords with dashes; types and functions of operations are keywords. Keys
that are data (names of nodes, options, members of details) keep their spelling, so that two keys never become equal. Each
top-level member has its own line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checker.edn.values import EdnMap, Keyword
from checker.edn.writer import dumps, keywordized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.edn.values import EdnValue
    from harness.op import Value

_QUESTIONS = {"valid": "valid?", "effective": "effective?"}
_KEYWORDS = {"type", "f", "kind"}
_DATA = {"details", "measured", "options"}  # members whose keys at every level are data
_BY_NAME = {
    "by_f",
    "errors",
    "versions",
    "timings",
    "nodes",
    "latency",
    "parts",
    "applied",
    "other_sightings",
    "other_leaders",
    "left_out",
}  # only their own keys are data


def results_edn(document: Mapping[str, Value]) -> str:
    """Returns the text of `results.edn`."""
    members = [f"{dumps(_named(name))} {dumps(_value(name, value))}" for name, value in document.items()]
    return "{" + ",\n ".join(members) + "}\n"


def _value(name: str, value: Value) -> EdnValue:
    """Returns the value of the member `name`."""
    result: EdnValue = value
    if name in _DATA:
        result = keywordized(value)
    elif name == "valid" and value == "unknown":
        result = Keyword("unknown")
    elif name in _KEYWORDS and isinstance(value, str):
        result = _as_it_is(value)
    elif isinstance(value, dict):
        result = _map(value, by_name=name in _BY_NAME)
    elif isinstance(value, list):
        result = tuple(_value("", member) for member in value)
    return result


def _map(value: Mapping[str, Value], *, by_name: bool) -> EdnMap:
    keys = [(_as_it_is if by_name else _named)(key) for key in value]
    if len(set(keys)) < len(keys):  # foreign names that differ by a dash only
        keys = [_as_it_is(key) for key in value]
    return EdnMap(
        (key, _value("" if by_name else name, member)) for key, (name, member) in zip(keys, value.items(), strict=True)
    )


def _named(name: str) -> EdnValue:
    return _as_it_is(_QUESTIONS.get(name, name.replace("_", "-")))


def _as_it_is(text: str) -> EdnValue:
    try:
        return Keyword(text)
    except ValueError:
        return text
