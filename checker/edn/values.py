"""EDN values as immutable Python values.

| EDN                     | Python                                                    |
|-------------------------|-----------------------------------------------------------|
| nil, true, false        | None, True, False                                         |
| integer, `N`            | int                                                       |
| float, `M`, ratio       | float, decimal.Decimal, Ratio (int if it is a whole one)  |
| string, character       | str, Char                                                 |
| keyword, symbol         | Keyword, Symbol                                           |
| vector, list            | tuple, EdnList                                            |
| map, set                | EdnMap, EdnSet                                            |
| tagged value            | Tagged                                                    |

The rule: every value can be a key of a map and a member of a set. Maps and sets distinguish what EDN distinguishes, unlike
Python's `==`: 1, 1.0, 1M and true are four keys. (A vector equals a list with the same members, as in Clojure.) Maps and sets
keep the order of the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeAlias, final

from checker.edn.spellings import usual

EdnValue: TypeAlias = Any  # one of the types in the table above

_WORD: Final = r"[^\s,\"()\[\]{};\\^`~@/\x00-\x1f\x7f\ud800-\udfff]"
_NAME: Final = re.compile(rf"(?![:'#])(?:{_WORD}+/)?(?:{_WORD}+|/)")
_NUMERIC: Final = re.compile(r"[-+.]?[0-9]")
_SHOWN_CHARACTERS: Final = 60
_RESERVED: Final = frozenset({"nil", "true", "false"})


class _Name:
    """A name, perhaps with a namespace. Immutable; equal to others of its class with the same name."""

    __slots__ = ("_hash", "name")

    name: str
    _hash: int

    def __init__(self, name: str) -> None:
        """Makes the name.

        Raises:
            ValueError: A reader of EDN could not read it back.
        """
        if not self._fits(name):
            raise ValueError(f"{name!r} is not the name of a {type(self).__name__.lower()}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_hash", hash((type(self).__name__, name)))

    @staticmethod
    def _fits(name: str) -> bool:
        return _NAME.fullmatch(name) is not None

    def __setattr__(self, attribute: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} does not change")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.name == self.name

    def __reduce__(self) -> tuple[type[_Name], tuple[str]]:
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


@final
class Keyword(_Name):
    """`:name` or `:namespace/name`.

    Attributes:
        name: Without the colon, with the namespace.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return f":{self.name}"


@final
class Symbol(_Name):
    """A bare name.

    Attributes:
        name: With the namespace.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def _fits(name: str) -> bool:
        return _NAME.fullmatch(name) is not None and name not in _RESERVED and _NUMERIC.match(name) is None


class _Pair:
    """A value of two members. Immutable."""

    __slots__ = ("_members",)

    _members: tuple[Any, Any]

    def __setattr__(self, attribute: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} does not change")

    def __hash__(self) -> int:
        return hash(canonical(self))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and canonical(self) == canonical(other)

    def __reduce__(self) -> tuple[type[_Pair], tuple[Any, Any]]:
        return type(self), self._members

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._members!r}"


@final
class Ratio(_Pair):
    """A fraction in lowest terms that is not whole."""

    __slots__ = ()

    def __init__(self, numerator: int, denominator: int) -> None:
        """Makes the fraction.

        Raises:
            ValueError: It is not in lowest terms, or whole, or its denominator is not positive; see `ratio`.
        """
        if denominator < 2 or math.gcd(numerator, denominator) != 1:
            raise ValueError(f"{numerator}/{denominator} is not a fraction in lowest terms")
        object.__setattr__(self, "_members", (numerator, denominator))

    @property
    def numerator(self) -> int:
        """Returns the numerator."""
        return int(self._members[0])

    @property
    def denominator(self) -> int:
        """Returns the denominator, at least 2."""
        return int(self._members[1])


def ratio(numerator: int, denominator: int) -> Ratio | int:
    """Returns a fraction in lowest terms; an integer if it is whole.

    Raises:
        ValueError: The denominator is not positive.
    """
    if denominator < 1:
        raise ValueError(f"expected a positive denominator, found {denominator}")
    divisor = math.gcd(numerator, denominator)
    if divisor == denominator:
        return numerator // denominator
    return Ratio(numerator // divisor, denominator // divisor)


@final
class Tagged(_Pair):
    """A value with a tag: `#inst "..."`, `#jepsen.history.Op{...}`.

    Only the tags of EDN itself are interpreted, and only to compare values: `#inst` and `#uuid` have several spellings of one
    value (`checker.edn.spellings`).
    """

    __slots__ = ()

    def __init__(self, tag: str, value: EdnValue) -> None:
        """Tags `value`.

        Raises:
            ValueError: The tag is not a name.
        """
        if _NAME.fullmatch(tag) is None or tag.startswith("_") or _NUMERIC.match(tag):
            raise ValueError(f"{tag!r} is not the name of a tag")
        object.__setattr__(self, "_members", (tag, value))

    @property
    def tag(self) -> str:
        """Returns the tag, without `#`."""
        return str(self._members[0])

    @property
    def value(self) -> EdnValue:
        """Returns the value without its tag."""
        return self._members[1]


@final
class Char(str):
    """One character. In Python it equals a string of one character, but not in EDN's maps and sets."""

    __slots__ = ()

    def __new__(cls, character: str) -> Char:
        """Makes the character.

        Raises:
            ValueError: It is not exactly one character.
        """
        if len(character) != 1:
            raise ValueError(f"expected one character, found {character!r}")
        return super().__new__(cls, character)

    def __hash__(self) -> int:
        return hash((Char, str(self)))

    def __eq__(self, other: object) -> bool:
        return type(other) is Char and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


@final
class EdnList(tuple[Any, ...]):
    """A list, `(...)`; equal to a vector with the same members."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"EdnList({tuple(self)!r})"


class _Exact:
    """Replaces a dict key that Python would confuse with another one, such as true with 1."""

    __slots__ = ("form", "value")

    def __init__(self, value: EdnValue) -> None:
        self.value = value
        self.form = canonical(value)

    def __hash__(self) -> int:
        return hash(self.form)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Exact and self.form == other.form


_PLAIN: Final = frozenset({Keyword, str, int, Symbol, Char, type(None)})  # Python distinguishes these as EDN does


def _wrap(value: EdnValue) -> Any:
    return value if type(value) in _PLAIN else _Exact(value)


def _unwrap(key: Any) -> EdnValue:
    return key.value if type(key) is _Exact else key


def canonical(value: EdnValue) -> Any:
    """Returns a hashable form that is equal for two values exactly if they are equal in EDN."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    form: Any
    if kind is bool or kind is Decimal:
        form = (kind, value)
    elif kind is float:
        form = (kind, repr(value))  # NaN must equal itself, or a set could not be read back
    elif kind is tuple or kind is EdnList:
        form = (tuple, *map(canonical, value))
    elif kind is EdnMap or kind is EdnSet:
        form = value._form  # noqa: SLF001 - cached there
    elif kind is Tagged:
        form = (kind, value.tag, canonical(usual(value.tag, value.value)))
    elif kind is Ratio:
        form = (kind, *value._members)  # noqa: SLF001 - of the same module
    else:
        raise TypeError(f"a {kind.__name__} is no EDN value")
    return form


def _shown(value: EdnValue) -> str:
    return str(value) if isinstance(value, _Name) else repr(value)[:_SHOWN_CHARACTERS]


class _Collection:
    """The base of maps and sets: members by exact key, and a cached form for comparisons."""

    __slots__ = ("_form_cache", "_members")

    _members: dict[Any, Any]
    _form_cache: Any

    def __setattr__(self, attribute: str, value: Any) -> NoReturn:
        raise AttributeError(f"an {type(self).__name__} does not change")

    @property
    def _form(self) -> Any:
        if self._form_cache is None:
            object.__setattr__(self, "_form_cache", (type(self), frozenset(self._forms())))
        return self._form_cache

    def _forms(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[EdnValue]:
        return map(_unwrap, self._members)

    def __contains__(self, key: object) -> bool:
        return _wrap(key) in self._members

    def __hash__(self) -> int:
        return hash(self._form)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._form == other._form


_ONLY_KEYWORDS: Final = frozenset({Keyword})
# The slots' own setters, which bypass `__setattr__`.
_set_members: Final = _Collection.__dict__["_members"].__set__
_set_form: Final = _Collection.__dict__["_form_cache"].__set__


@final
class EdnMap(_Collection, Mapping[Any, Any]):
    """A map, `{...}`."""

    __slots__ = ()

    def __init__(self, entries: Iterable[tuple[EdnValue, EdnValue]] = ()) -> None:
        """Makes a map of keys and values.

        Raises:
            ValueError: A key is a duplicate.
        """
        members: dict[Any, Any] = {}
        for key, value in entries:
            exact = _wrap(key)
            if exact in members:
                raise ValueError(f"the key {_shown(key)} is a duplicate")
            members[exact] = value
        object.__setattr__(self, "_members", members)
        object.__setattr__(self, "_form_cache", None)

    @classmethod
    def of(cls, members: Sequence[EdnValue]) -> EdnMap:
        """Returns the map of alternating keys and values.

        Raises:
            ValueError: A key is a duplicate, or the last one has no value.
        """
        keys = members[::2]
        if len(members) % 2:
            raise ValueError(f"expected a value for the key {_shown(keys[-1])} of a map")
        entries = dict(zip(keys, members[1::2], strict=True))
        if len(entries) < len(keys) or not _ONLY_KEYWORDS.issuperset(map(type, keys)):
            return cls(zip(keys, members[1::2], strict=True))
        made = cls.__new__(cls)
        _set_members(made, entries)
        _set_form(made, None)
        return made

    def __getitem__(self, key: EdnValue) -> EdnValue:
        return self._members[_wrap(key)]

    @classmethod
    def of_columns(cls, keys: Sequence[Keyword], values: Sequence[EdnValue]) -> EdnMap:
        """Returns the map of different keywords and their values."""
        made = cls.__new__(cls)
        _set_members(made, dict(zip(keys, values, strict=True)))
        _set_form(made, None)
        return made

    def columns(self) -> tuple[tuple[Any, ...], list[EdnValue]]:
        """Returns keys and values, each in their order; some hashable object replaces a key that Python would confuse.

        This is for code that reads millions of maps with the same few keys.
        """
        return tuple(self._members), list(self._members.values())

    def get(self, key: EdnValue, default: Any = None) -> Any:
        """Returns the value of a key, or `default`."""
        return self._members.get(key if type(key) is Keyword else _wrap(key), default)

    def _forms(self) -> Iterator[Any]:
        return ((canonical(_unwrap(key)), canonical(value)) for key, value in self._members.items())

    def __reduce__(self) -> tuple[type[EdnMap], tuple[list[tuple[Any, Any]]]]:
        return EdnMap, (list(self.items()),)

    def __repr__(self) -> str:
        return f"EdnMap({list(self.items())!r})"


@final
class EdnSet(_Collection):
    """A set, `#{...}`."""

    __slots__ = ()

    def __init__(self, members: Iterable[EdnValue] = ()) -> None:
        """Makes a set.

        Raises:
            ValueError: A member is a duplicate.
        """
        exact: dict[Any, None] = {}
        for member in members:
            key = _wrap(member)
            if key in exact:
                raise ValueError(f"the member {_shown(member)} is a duplicate")
            exact[key] = None
        object.__setattr__(self, "_members", exact)
        object.__setattr__(self, "_form_cache", None)

    def _forms(self) -> Iterator[Any]:
        return (canonical(member) for member in self)

    def __reduce__(self) -> tuple[type[EdnSet], tuple[list[Any]]]:
        return EdnSet, (list(self),)

    def __repr__(self) -> str:
        return f"EdnSet({list(self)!r})"
