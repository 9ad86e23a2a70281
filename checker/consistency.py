"""Consistency models by name, and which anomalies each of them prohibits.

The models and their order are those of Adya (*Weak consistency*, MIT, 1999), Bailis and others (*Highly available
transactions*, VLDB 2014) and Cerone, Bernardi and Gotsman (CONCUR 2015), with the names and the prohibited anomalies of
Jepsen's Elle. Where these are weaker than the definition of a model, it prohibits more here: those of `ON_DEMAND`, and
`G-single` under parallel snapshot isolation.

A model prohibits its own anomalies, those of the models that it implies, and each anomaly that implies one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from harness.console.plain import name as plain_name
from harness.console.suggest import did_you_mean
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

DEFAULT: Final = "strict-serializable"
NONE: Final = "none"
PROCESS: Final = "process"
TRANSACTION_ORDER: Final = "transaction-order"  # a source of the order of versions
ATOMIC_VISIBILITY: Final = "atomic-visibility"  # another one
REALTIME: Final = "realtime"
MALFORMED: Final = "malformed-answer"
GARBAGE: Final = "garbage-read"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyModel:
    """A consistency model.

    Attributes:
        name: Its name.
        aliases: Other names of it.
        implies: The models that it directly implies.
        prohibits: The anomalies that it prohibits, besides those of the models that it implies.
    """

    name: str
    aliases: tuple[str, ...] = ()
    implies: tuple[str, ...] = ()
    prohibits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about a history of transactions.

    Attributes:
        workload: The micro-operations: `list-append` or `rw-register`.
        model: The name or an alias of a consistency model.
        sources: What the order of versions follows from besides the initial version, and the lists that were read.
        anomalies: Anomalies that the history must not have besides those that the model prohibits.
        initial: The value of all registers at the beginning, in canonical JSON; None: nil.
    """

    workload: str
    model: str
    sources: tuple[str, ...] = ()
    anomalies: tuple[str, ...] = ()
    initial: str | None = None


@runtime_checkable
class Asking(Protocol):
    """A judge of transactions, which tells what it asks."""

    def question(self) -> Question:
        """Returns what it asks."""
        ...


def _model(name: str, aliases: str = "", *, implies: str = "", prohibits: str = "") -> ConsistencyModel:
    return ConsistencyModel(
        name=name,
        aliases=tuple(aliases.split()),
        implies=tuple(implies.split()),
        prohibits=tuple(prohibits.split()),
    )


MODELS: Final = (
    _model("read-uncommitted", "PL-1", prohibits=f"G0 duplicate-elements cyclic-versions garbage-read {MALFORMED}"),
    _model("read-committed", "PL-2", implies="read-uncommitted", prohibits="G1"),
    _model("monotonic-atomic-view", implies="read-committed", prohibits="observed-transaction-vanishes"),
    _model("read-atomic", implies="monotonic-atomic-view", prohibits="internal G1a future-read fractured-read"),
    _model("causal-cerone", implies="read-atomic", prohibits="internal G1a G-causal"),
    _model("update-atomic", implies="read-atomic", prohibits="lost-update missed-update forced-update"),
    _model("prefix", implies="causal-cerone", prohibits="internal G1a G-prefix"),
    _model(
        "parallel-snapshot-isolation", implies="causal-cerone update-atomic", prohibits="internal G1a G-single G-forced"
    ),
    _model("monotonic-view", "PL-2L", implies="read-committed", prohibits="G1 G-monotonic"),
    _model("monotonic-snapshot-read", "PL-MSR", implies="read-committed", prohibits="G1 G-MSR"),
    _model("cursor-stability", "PL-CS", implies="read-committed", prohibits="G1 lost-update"),
    _model("consistent-view", "PL-2+", implies="cursor-stability monotonic-view", prohibits="G1 G-single G-forced"),
    _model("forward-consistent-view", "PL-FCV", implies="consistent-view", prohibits="G1"),
    _model("update-serializable", "PL-3U", implies="forward-consistent-view", prohibits="G1 G-update"),
    _model(
        "repeatable-read",
        "PL-2.99",
        implies="cursor-stability monotonic-atomic-view",
        prohibits="G1 G2-item lost-update",
    ),
    _model(
        "snapshot-isolation",
        "PL-SI SI",
        implies="forward-consistent-view monotonic-atomic-view monotonic-snapshot-read parallel-snapshot-isolation prefix",
        prohibits="internal G1 G-nonadjacent G-SI",
    ),
    _model(
        "serializable",
        "PL-3 conflict-serializable",
        implies="repeatable-read update-serializable snapshot-isolation",
        prohibits="internal G1 G2",
    ),
    _model(
        "strong-session-read-uncommitted", "strong-session-PL-1", implies="read-uncommitted", prohibits="G0-process"
    ),
    _model(
        "strong-session-read-committed",
        "strong-session-PL-2",
        implies="read-committed strong-session-read-uncommitted",
        prohibits="G1c-process",
    ),
    _model(
        "strong-session-snapshot-isolation",
        "strong-session-SI",
        implies="snapshot-isolation strong-session-read-committed",
        prohibits="internal G1-process G-nonadjacent-process G-SI-process",
    ),
    _model(
        "strong-session-serializable",
        "strong-session-PL-3",
        implies="serializable strong-session-snapshot-isolation",
        prohibits="G1-process G2-process",
    ),
    _model(
        "strong-read-uncommitted",
        "strong-PL-1",
        implies="strong-session-read-uncommitted",
        prohibits="G0-realtime",
    ),
    _model(
        "strong-read-committed",
        "strong-PL-2",
        implies="strong-session-read-committed strong-read-uncommitted",
        prohibits="G1c-realtime",
    ),
    _model(
        "strong-snapshot-isolation",
        "strong-SI",
        implies="strong-session-snapshot-isolation strong-read-committed",
        prohibits="internal G1-realtime G-nonadjacent-realtime G-SI-realtime",
    ),
    _model(
        "strict-serializable",
        "strong-serializable PL-SS",
        implies="serializable strong-snapshot-isolation strong-session-serializable",
        prohibits="G1 G1c-realtime G2-realtime",
    ),
)

UNDECIDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "causal": "causal consistency",
        "linearizable": "linearizability",
        "monotonic-reads": "a session guarantee",
        "monotonic-writes": "a session guarantee",
        "PRAM": "PRAM",
        "read-your-writes": "a session guarantee",
        "sequential": "sequential consistency",
        "session-serializable": "session serializability",
        "view-serializable": "view serializability",
        "1SR": "one-copy serializability",
        "writes-follow-reads": "a session guarantee",
    }
)

ANOMALIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "G0": "a cycle of transactions in which each overwrites a version of the one before it",
        "G1a": "a transaction reads what a failed transaction wrote",
        "G1b": "a transaction reads a version that another transaction replaced itself",
        "G1c": "a cycle of transactions in which each overwrites or reads a version of the one before it",
        "G-single-item": "a cycle with one anti-dependency: one transaction reads a version that the next one replaces",
        "G-nonadjacent-item": "a cycle with several anti-dependencies, and no two of them follow each other",
        "G-SI": "a cycle with anti-dependencies that follow each other, but the transactions of some of them write a common "
        "key, so that they must not overlap; or transactions that append to common keys, and that no order keeps apart",
        "G-forced": "a cycle with at most one anti-dependency, if others force the order of appends that nobody read",
        "G2-item": "a cycle with anti-dependencies that follow each other",
        "observed-transaction-vanishes": "a transaction reads what another one wrote, and after that an older version of "
        "another key than that one wrote",
        "fractured-read": "a transaction reads what another one wrote, and an older version of another key than that one wrote",
        "G-causal": "a transaction reads an older version than that of a transaction on which it depends by reads alone",
        "G-prefix": "a cycle in which each anti-dependency follows a dependency by a read",
        "G-monotonic": "a transaction depends on another one by a read, and by a later read misses what that one wrote or "
        "depends on",
        "G-MSR": "a cycle with anti-dependencies, in which each transaction depends on the one before it by a read, and misses "
        "the next one by that read or a later one",
        "G-update": "a cycle with anti-dependencies, in which at most one transaction only reads",
        "missed-update": "a transaction writes after another one, and reads an older version of a key than that one wrote",
        "forced-update": "a cycle without an anti-dependency, if others force the order of appends that nobody read",
        "lost-update": "transactions read the same version of a key first, and then all write the key",
        "dirty-update": "a transaction that succeeded wrote after a version of a failed one",
        "internal": "a transaction contradicts its own earlier reads and writes",
        "future-read": "a transaction reads a value that it writes only later",
        MALFORMED: "the answer to a transaction has other functions, keys or written values than its request",
        GARBAGE: "a transaction reads a value that nobody wrote",
        "duplicate-elements": "a list has an element twice",
        "cyclic-versions": "the assumed orders of the versions of a key contradict each other, or the lists that were read",
        "incompatible-order": "of two lists that were read of a key, neither is the beginning of the other; or a list has an "
        "element, but not after what the same transaction appended before it",
    }
)


def _implied() -> dict[str, set[str]]:
    """Returns what each anomaly implies directly."""
    relation: dict[str, set[str]] = {
        "G1a": {"G1"},
        "G1b": {"G1"},
        "incompatible-order": {"G1a"},
        "dirty-update": {"G1a"},
        "future-read": {"G1c"},
        "lost-update": {"G2-item"},
        "observed-transaction-vanishes": {"fractured-read", "G-monotonic"},
        "G-forced": {"G-SI", "G2-item"},
        "missed-update": {"G-single-item"},
        "forced-update": {"G-forced"},
        "G-monotonic": {"G-single-item", "G-MSR"},
        "G-MSR": {"G-prefix"},
        "G-update": {"G2-item"},
        "fractured-read": {"G-causal"},
        "G-causal": {"G-prefix", "G-single-item"},
        "G-prefix": {"G-nonadjacent-item"},
    }
    for suffix in ("", f"-{PROCESS}", f"-{REALTIME}"):
        relation |= {
            f"G0{suffix}": {f"G1c{suffix}"},
            f"G1c{suffix}": {f"G1{suffix}"},
            f"G1{suffix}": set(),
            f"G-single-item{suffix}": {f"G-single{suffix}", f"G-nonadjacent-item{suffix}"},
            f"G-nonadjacent-item{suffix}": {f"G-nonadjacent{suffix}", f"G2-item{suffix}"},
            f"G-SI{suffix}": set(),
            f"G2-item{suffix}": {f"G2{suffix}"},
            f"G-single{suffix}": {f"G-nonadjacent{suffix}"},
            f"G-nonadjacent{suffix}": {f"G2{suffix}"},
            f"G2{suffix}": set(),
        }
    for name, implied in relation.items():
        for weaker, stronger in (("", f"-{PROCESS}"), (f"-{PROCESS}", f"-{REALTIME}")):
            base = name.removesuffix(weaker)
            if (
                name.endswith(weaker)
                and not base.endswith((f"-{PROCESS}", f"-{REALTIME}"))
                and base + stronger in relation
            ):
                implied.add(base + stronger)
    return relation


IMPLIED: Final[Mapping[str, Collection[str]]] = MappingProxyType(_implied())
ON_DEMAND: Final = (
    "observed-transaction-vanishes",
    "fractured-read",
    "G-causal",
    "G-prefix",
    "G-monotonic",
    "G-MSR",
    "G-update",
    "missed-update",
    "G-forced",
    "forced-update",
)

# What a model asks of the order of the versions of registers, the strongest first; `ordering/class.rs` has the definitions.
CLASSES: Final = (
    "G2-item",
    "G-nonadjacent-item",
    "G-update",
    "G-single-item",
    "G-prefix",
    "missed-update",
    "G-causal",
    "fractured-read",
    "G-MSR",
    "G-monotonic",
    "observed-transaction-vanishes",
    "G1c",
    "G0",
)


def find(name: str) -> ConsistencyModel:
    """Returns a model by its name or an alias, whatever the case of the letters.

    Raises:
        InputError: Labrys does not decide the model, or there is none with this name.
    """
    folded = name.casefold()
    for model in MODELS:
        if folded in {model.name.casefold(), *(alias.casefold() for alias in model.aliases)}:
            return model
    for other, what in UNDECIDED.items():
        if folded == other.casefold():
            raise InputError(
                f"the consistency model {other} is {what}, and no anomaly of transactions decides it; name one of "
                f"{', '.join(model.name for model in MODELS)}"
            )
    known = [alias for model in MODELS for alias in (model.name, *model.aliases)]
    raise InputError(
        f"expected a consistency model, found {plain_name(name)}; there are {', '.join(model.name for model in MODELS)}. "
        f"{did_you_mean(name, known)}".rstrip()
    )


def _closed(names: Iterable[str], next_of: Mapping[str, Collection[str]]) -> frozenset[str]:
    closed, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in closed:
            closed.add(name)
            left += next_of.get(name, ())
    return frozenset(closed)


@cache
def _weaker(name: str) -> frozenset[str]:
    """Returns a model and all that it implies."""
    return _closed([name], {model.name: model.implies for model in MODELS})


def find_anomalies(names: str) -> tuple[str, ...]:
    """Returns the names of anomalies in a text with commas between them, such as `G1c,lost-update`; sorted, each once.

    Raises:
        InputError: A name is none of an anomaly that Labrys finds.
    """
    kinds = sorted({name.strip() for name in names.split(",")} - {""})
    known = sorted({*IMPLIED, *ANOMALIES})
    for name in kinds:
        if name not in known:
            raise InputError(
                f"expected names of anomalies with commas between them, found {plain_name(name)}. {did_you_mean(name, known)}"
            )
    return tuple(kinds)


@cache
def prohibited(name: str, more: tuple[str, ...] = ()) -> frozenset[str]:
    """Returns all anomalies that contradict a model, by its name, and all that imply one of `more`."""
    direct = {anomaly for model in MODELS if model.name in _weaker(name) for anomaly in model.prohibits} | set(more)
    known = {*IMPLIED, *direct, *ANOMALIES}
    return frozenset(anomaly for anomaly in known if not _closed([anomaly], IMPLIED).isdisjoint(direct))


@cache
def searched(name: str, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Returns the anomalies of `ON_DEMAND` that contradict a model or `more`, without those that show another one which does.

    They refine the types that are always found, so they are of use only if the model allows those.
    """
    bad = prohibited(name, more)
    return tuple(kind for kind in ON_DEMAND if kind in bad and bad.isdisjoint(_closed(IMPLIED[kind], IMPLIED)))


@cache
def order_of(name: str, more: tuple[str, ...] = ()) -> str:
    """Returns what orders transactions besides their data in a model, or in `more` anomalies: `realtime`, `process`, `none`."""
    direct = [anomaly for model in MODELS if model.name in _weaker(name) for anomaly in model.prohibits]
    for order in (REALTIME, PROCESS):
        if any(anomaly.endswith(f"-{order}") for anomaly in (*direct, *more)):
            return order
    return NONE


@cache
def class_of(name: str, more: tuple[str, ...] = ()) -> tuple[str, str]:
    """Returns what a model, and `more` anomalies, ask of the order of the versions of registers.

    This is the weakest anomaly that each order of the versions has if the model is contradicted, without a suffix; and what
    orders transactions besides their data.
    """
    bad = prohibited(name, more)
    strongest = next(candidate for candidate in CLASSES if candidate in bad)
    orders = (order for order in (REALTIME, PROCESS) if f"{strongest}-{order}" in bad)
    return strongest, next(orders, NONE)


@cache
def implied_orders(name: str) -> tuple[str, ...]:
    """Returns what the order of the versions of registers follows from in a model, without any option."""
    strongest, order = class_of(name)
    return (
        "writes-follow-reads",
        *((order,) if order != NONE else ()),
        *(("dependencies",) if strongest != "G0" else ()),
        *((ATOMIC_VISIBILITY,) if "fractured-read" in prohibited(name) else ()),
    )


def ruled_out(anomalies: Collection[str]) -> tuple[list[str], list[str]]:
    """Returns the weakest models that some anomalies contradict, and the other ones, each sorted by name."""
    out = {model.name for model in MODELS if not prohibited(model.name).isdisjoint(anomalies)}
    weakest = {name for name in out if not out & (_weaker(name) - {name})}
    return sorted(weakest), sorted(out - weakest)
