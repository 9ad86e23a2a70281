"""What a user asks for about faults, as values: kinds with their targets, ranges of seconds, triggers, and options of kinds.

`nemesis.parsing` makes them of the texts of a command line or of a file, once, when the options are read. From then on code
changes values, such as another target of a kind, and no texts. `str` of a value is its form on the command line.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from harness.console.sources import as_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harness.op import Value
    from nemesis.targets import Aim

T = TypeVar("T")
S = TypeVar("S")

ALL_KINDS: Final = "all"
NO_KIND: Final = "none"
WITHOUT: Final = "-"
AIM_SEPARATOR: Final = ":"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A kind that the user asks for.

    Attributes:
        kind: Its name, or that of a variant.
        aim: Its target, or its roles and nodes; None: the default target of the kind.
    """

    kind: str
    aim: Aim | None = None

    def __str__(self) -> str:
        """Returns e.g. `kill:leader`."""
        return self.kind if self.aim is None else f"{self.kind}{AIM_SEPARATOR}{self.aim}"


@dataclass(frozen=True, slots=True)
class EveryKind:
    """Every kind that heals and that the nodes support."""

    def __str__(self) -> str:
        """Returns its word."""
        return ALL_KINDS


@dataclass(frozen=True, slots=True)
class Without:
    """One kind less than every kind."""

    kind: str

    def __str__(self) -> str:
        """Returns e.g. `-crash`."""
        return f"{WITHOUT}{self.kind}"


@dataclass(frozen=True, slots=True)
class NoKind:
    """No faults, asked for by name."""

    def __str__(self) -> str:
        """Returns its word."""
        return NO_KIND


Part: TypeAlias = Asked | EveryKind | Without | NoKind


@dataclass(frozen=True, slots=True)
class Request:
    """The kinds that the user asks for, in order. It is false if the user asks for nothing at all, also not for no faults."""

    parts: tuple[Part, ...] = ()

    def __bool__(self) -> bool:
        """Returns whether the user asks for something."""
        return bool(self.parts)

    def __str__(self) -> str:
        """Returns e.g. `all,-crash,kill:n1`."""
        return ",".join(map(str, self.parts))

    @property
    def every_kind(self) -> bool:
        """Returns whether `all` is among the parts."""
        return EveryKind() in self.parts

    @property
    def none(self) -> bool:
        """Returns whether the run has no faults."""
        return not self.parts or NoKind() in self.parts

    @property
    def without(self) -> tuple[str, ...]:
        """Returns the kinds that are left out of every kind."""
        return tuple(part.kind for part in self.parts if isinstance(part, Without))


@dataclass(frozen=True, slots=True)
class Span:
    """A range of seconds."""

    low_s: float
    high_s: float

    def __str__(self) -> str:
        """Returns e.g. `6-15`, or one number for a range of one value."""
        low, high = as_written(self.low_s), as_written(self.high_s)
        return low if low == high else f"{low}-{high}"


@dataclass(frozen=True, slots=True)
class Quiet:
    """The seconds without faults at the start and at the end of the workload."""

    before_s: float
    after_s: float

    def __str__(self) -> str:
        """Returns e.g. `5-10`, or one number for both."""
        before, after = as_written(self.before_s), as_written(self.after_s)
        return before if before == after else f"{before}-{after}"


@dataclass(frozen=True, slots=True)
class ByKind(Generic[T]):
    """A value for all kinds, and values of single kinds.

    Attributes:
        usual: The value of the kinds that have none of their own; None: they have none.
        own: The values of single kinds, by name.
    """

    usual: T | None = None
    own: Mapping[str, T] = field(default_factory=dict)

    def of(self, kind: str) -> T | None:
        """Returns the value of a kind."""
        return self.own.get(kind, self.usual)

    def map(self, change: Callable[[T], S]) -> ByKind[S]:
        """Returns the same with each value changed."""
        usual = None if self.usual is None else change(self.usual)
        return ByKind(usual, {kind: change(value) for kind, value in self.own.items()})

    def values(self) -> Iterator[T]:
        """Yields the values."""
        yield from () if self.usual is None else (self.usual,)
        yield from self.own.values()

    def parts(self) -> Iterator[str]:
        """Yields the form of each value on the command line."""
        yield from () if self.usual is None else (str(self.usual),)
        yield from (f"{kind}={value}" for kind, value in self.own.items())

    def __bool__(self) -> bool:
        """Returns whether there is a value."""
        return self.usual is not None or bool(self.own)

    def __str__(self) -> str:
        """Returns e.g. `6-15,pause=0.2-2`."""
        return ",".join(self.parts())


@dataclass(frozen=True, slots=True)
class KindOptions:
    """Options of kinds.

    Attributes:
        given: The values by name, for each kind.
    """

    given: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    def of(self, kind: str) -> Mapping[str, Value]:
        """Returns the options of a kind."""
        return self.given.get(kind, {})

    def __str__(self) -> str:
        """Returns e.g. `packet-loss.probability=0.5`."""
        return ",".join(
            f"{kind}.{name}={value if isinstance(value, str) else json.dumps(value)}"
            for kind, options in self.given.items()
            for name, value in options.items()
        )
