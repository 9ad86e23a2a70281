"""The conventions in which tools differ, and how an EDN history names its own.

A convention is a name and one of its words: `nil_read` is `exact` or `any`. Formats have defaults (`checker.checking`). Several
tools write EDN, so the first event of Labrys' own EDN histories has their conventions:

    :labrys/conventions {:keyed true, :nil-read :exact, :failed-cas :drop, :crashed-dequeue :takes}

The key has a namespace, so that no other tool gives it another meaning. Jepsen and knossos ignore unknown keys. Labrys does
not: an unknown name or word is an error, because the verdict depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from checker.edn.values import EdnMap, Keyword
from checker.edn.writer import dumps
from harness.console.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.edn.values import EdnValue

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "nil_read": ("exact", "any"),
    "failed_cas": ("drop", "observe"),
    "crashed_dequeue": ("takes", "never"),
}
OWN: Final[Mapping[str, str]] = {"nil_read": "exact", "failed_cas": "drop", "crashed_dequeue": "takes"}
MEMBER: Final = Keyword("labrys/conventions")
_KEYED: Final = "keyed"


def spelled(conventions: Mapping[str, str], *, keyed: bool) -> str:
    """Returns conventions as the key and value in the first event of a history.

    Args:
        conventions: Words by name.
        keyed: Whether values are pairs of a key and a value.
    """
    words = [(Keyword(name.replace("_", "-")), Keyword(word)) for name, word in conventions.items()]
    return f"{MEMBER} {dumps(EdnMap([(Keyword(_KEYED), keyed), *words]))}"


def parsed(value: EdnValue) -> tuple[dict[str, str], bool | None]:
    """Returns the conventions in a first event, and whether values are keyed; None if it does not have this.

    Raises:
        ValueError: A name or a word is unknown.
    """
    if not isinstance(value, EdnMap):
        raise ValueError(f"expected a map of conventions after {MEMBER}, found {_shown(value)}")  # noqa: TRY004 - bad text
    words: dict[str, str] = {}
    keyed: bool | None = None
    for key, word in value.items():
        name = key.name if isinstance(key, Keyword) else ""
        if name == _KEYED:
            if not isinstance(word, bool):
                raise ValueError(f"expected true or false for :{_KEYED} in {MEMBER}, found {_shown(word)}")
            keyed = word
            continue
        convention = name.replace("-", "_")
        if convention not in WORDS or "_" in name:
            names = [_KEYED, *(known.replace("_", "-") for known in WORDS)]
            hint = did_you_mean(name, names)
            raise ValueError(f"expected :{', :'.join(names)} in {MEMBER}, found {_shown(key)}. {hint}".rstrip())
        if not isinstance(word, Keyword) or word.name not in WORDS[convention]:
            known = " or ".join(f":{word}" for word in WORDS[convention])
            raise ValueError(f"expected {known} for :{name} in {MEMBER}, found {_shown(word)}")
        words[convention] = word.name
    return words, keyed


def _shown(value: EdnValue) -> str:
    text = dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
