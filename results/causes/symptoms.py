"""The symptom of a run: what decides whether two runs look alike.

The symptom has two parts. Its *key* is short and decides the groups: how the run ended, the first part, the anomaly, and the
decisive sentence. Its *traits* are everything in the signature, and measure how alike two runs are. Words that depend on the
choice of operations and faults of a run, and not on the defect, are left out of both.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from harness.ends import PROCESSES
from harness.indexes import RAFT_INVARIANTS
from harness.leaders import LEADER
from harness.parts import LOG_PATTERNS
from harness.reached import RECOVERED
from harness.states import ONE_LEADER, REPLICAS_EQUAL
from results.record.signatures import SILENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from results.record.signatures import NodeThen, Signature

DIGITS: Final = 12  # of a key

# The sentences of these parts tell of a violation that another part explains better, if that is invalid too.
_FOLLOWING: Final = frozenset({"order-agrees", REPLICAS_EQUAL, "final-reads", RECOVERED, LOG_PATTERNS, PROCESSES})

# Parts that are invalid or not by the state of the nodes, and not by the operations that happened to look. The first ones are
# nearer to a cause: two leaders in a term can make nodes lose entries, and then replicas differ.
_OF_STATE: Final = (ONE_LEADER, RAFT_INVARIANTS, REPLICAS_EQUAL)

# What a user lost, from the words of first sentences; `results.circumstances.losses` has them.
_LOST: Final = ("seen before", "never seen again", "gone", "missed")

_CLAUSE: Final = re.compile(r"[.:;] ")
_CHANGE: Final = re.compile(
    r"\b(?:write of #|cas from # to #|cas to #|compare-and-set to #|put of #|append of #|write|cas|compare-and-set)(?![\w-])"
)
_HOW_MANY: Final = re.compile(
    r"(?: ?# of # key is invalid:?[^.]*\.?| This is so on # of # key\.?| There is # such cases?\.?)"
)
_KEY: Final = re.compile(r"^(?:Key #|Keys? …): ")
_ARTICLE: Final = re.compile(r"\b(?:an|a|the|of # key|on key #)(?![\w'-]) ?", re.IGNORECASE)
_SPACES: Final = re.compile(r"\s+")

_WEIGHTS: Final[Mapping[str, float]] = {
    "part": 1.0, "anomaly": 3.0, "lost": 2.0, "said": 2.0, "error": 3.0, "phase": 1.0, "warning": 1.0, "plan": 1.0,
    "when": 0.5, "leaders": 0.5, "node": 0.5,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """The symptom of a run.

    Attributes:
        key: Twelve digits of a hash of what decides the groups.
        sentence: What decides the groups, in words.
        traits: Words of the signature, each after its kind and a colon.
    """

    key: str
    sentence: str
    traits: frozenset[str]

    def likeness(self, other: Symptom) -> float:
        """Returns how alike two symptoms are, from 0 to 1.

        Algorithm: the weighted index of Jaccard (P. Jaccard, "The distribution of the flora in the alpine zone", 1912): the
        weight of the common traits, as a share of the weight of all traits of both.
        """
        if self.traits == other.traits:
            return 1.0
        common = sum(map(weight_of, self.traits & other.traits))
        return common / (self.weight + other.weight - common)

    @property
    def weight(self) -> float:
        """Returns the weight of its traits."""
        return _weight(self.traits)


def symptom_of(signature: Signature, software: str, telling: Iterable[str] = ()) -> Symptom:
    """Returns the symptom of a run.

    Args:
        signature: Its signature.
        software: The software under test; runs of two programs are never alike.
        telling: The classes of warnings in its logs that valid runs of the software lack.
    """
    said = _said(signature)
    decisive = [software, signature.ended, said]
    traits = {f"software:{software}", f"ended:{signature.ended}"}
    traits |= {f"part:{part}" for part in signature.parts}
    traits |= {f"said:{bare(sentence)}" for sentence in signature.sentences}
    traits |= {f"warning:{warning}" for warning in telling}
    traits |= {f"node:{_node(node)}" for node in signature.nodes if node.answered}
    for kind, word in (
        ("anomaly", signature.anomaly), ("lost", bare(signature.lost)), ("when", signature.when), ("phase", signature.phase),
        ("leaders", "" if signature.leaders is None else str(min(signature.leaders, 2))),
        ("plan", "" if signature.plan is None else " ".join(signature.plan)),
    ):  # fmt: skip
        if word:
            traits.add(f"{kind}:{word}")
    digest = hashlib.sha256("\n".join(decisive).encode("utf-8", errors="backslashreplace")).hexdigest()
    return Symptom(key=digest[:DIGITS], sentence=said, traits=frozenset(traits))


def bare(sentence: str) -> str:
    """Returns a stripped sentence without what depends on the choice of operations: names, articles, numbers of keys."""
    words = _HOW_MANY.sub("", _KEY.sub("", sentence))
    words = _ARTICLE.sub("", _CHANGE.sub("change", words))
    return _SPACES.sub(" ", words.replace("changes", "change")).strip(" .")


def _said(signature: Signature) -> str:
    """Returns the words that decide the groups.

    Of an invalid run, these are the first part that explains itself, and the parts about the state of nodes that are invalid
    too. If it has an anomaly, the state of the nodes decides beside it. Without such a part, these are the anomaly, what a user
    lost, and whether a leader or a silent node gave the decisive answer.
    """
    if signature.ended == "broken off":
        return f"{signature.phase or 'no phase'}: {bare(_first(signature.sentences))}"
    if signature.ended != "invalid":
        return f"{', '.join(signature.parts)}: {bare(_first(signature.sentences))}"
    part = next((candidate for candidate in signature.parts if candidate not in _FOLLOWING), _first(signature.parts))
    beside = [candidate for candidate in signature.parts if candidate in _OF_STATE and candidate != part]
    if signature.anomaly:
        anomaly = f"{signature.anomaly}{_outcome(signature.sentences)}"
        if beside:
            return f"{min(beside, key=_OF_STATE.index)}: {anomaly}"
        lost = next((word for word in _LOST if word in signature.lost.lower()), bare(signature.lost))
        return f"{part}: {anomaly}{f', {lost}' if lost else ''}{_answered(signature.nodes)}"
    sentences = signature.sentences[len(signature.sentences) - len(signature.parts) :]
    own = bare(dict(zip(signature.parts, sentences, strict=False)).get(part, ""))
    also = f"; also {', '.join(beside)}" if beside else ""
    return f"{part}: {own if part == LOG_PATTERNS else _CLAUSE.split(own)[0]}{also}"


def _answered(nodes: Iterable[NodeThen]) -> str:
    """Returns whether leaders alone, or a silent node, gave the decisive answer; empty for others."""
    roles = {node.role for node in nodes if node.answered}
    return "; a silent node answered" if SILENT in roles else "; a leader answered" if roles == {LEADER} else ""


def _outcome(sentences: Iterable[str]) -> str:
    """Returns the code in brackets with which an operation had ended, such as ` (no-leader)`; empty if no sentence has one."""
    codes = (re.search(r"failed at # \(([a-z][a-z-]{0,40})\)", sentence) for sentence in sentences)
    return next((f" ({code[1]})" for code in codes if code is not None), "")


def _first(words: list[str]) -> str:
    return words[0] if words else ""


def _node(node: NodeThen) -> str:
    return " ".join(filter(None, [node.role, node.term, node.log, node.cut]))


@lru_cache(maxsize=1 << 16)
def _weight(traits: frozenset[str]) -> float:
    return sum(map(weight_of, traits))


@lru_cache(maxsize=1 << 16)
def weight_of(trait: str) -> float:
    """Returns the weight of a trait."""
    return _WEIGHTS.get(trait.partition(":")[0], 1.0)
