"""The canonical form of an object: equal forms mean that two processes behave in the same way from now on.

A process is a plain object (`clusters.sim.host`), so its attributes, and what they refer to, are its whole state. A function
counts with its code and the values that it has captured, since pending timers are often such functions. An object that occurs
twice has a number, so that shared objects and circles differ from equal copies.
"""

from __future__ import annotations

import enum
import functools
import types
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DIGEST_BYTES: Final = 16
_PLAIN: Final = frozenset({int, float, str, bytes, bool, type(None)})
_NAMED: Final = (type, types.ModuleType, types.WrapperDescriptorType, types.MethodDescriptorType)


class FormError(TypeError):
    """An object has no canonical form."""


def digest(value: Any, known: Mapping[int, str]) -> bytes:
    """Returns the digest of the canonical form of an object.

    Args:
        value: The object.
        known: The names of objects that are the same in all states, by `id`, such as the machine of the process.

    Raises:
        FormError: A part has a type without a canonical form, e.g. a generator.
    """
    form = _Form(known)
    form.add(value)
    return blake2b("\x1f".join(form.words).encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


class _Form:
    """The words of one form, so far."""

    __slots__ = ("_kept", "_known", "_numbers", "words")

    def __init__(self, known: Mapping[int, str]) -> None:
        self.words: list[str] = []
        self._known = known
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # objects made on the way, so that no `id` is used twice

    def add(self, value: Any) -> None:
        """Adds the form of an object."""
        kind = type(value)
        if kind in _PLAIN:
            self.words.append(f"{kind.__name__}:{value!r}")
        elif id(value) in self._known:
            self.words.append(f"known:{self._known[id(value)]}")
        elif isinstance(value, tuple):
            self._all(f"{kind.__module__}.{kind.__qualname__}:{len(value)}", value)
        elif isinstance(value, enum.Enum):
            self.words.append(f"enum:{kind.__qualname__}.{value.name}")
        elif isinstance(value, _NAMED):
            self.words.append(f"name:{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}")
        elif id(value) in self._numbers:
            self.words.append(f"again:{self._numbers[id(value)]}")
        else:
            self._numbers[id(value)] = len(self._numbers)
            self._kept.append(value)
            self._compound(value, kind)

    def _compound(self, value: Any, kind: type) -> None:
        """Adds the form of an object that can refer to itself."""
        if kind is dict or isinstance(value, (dict, types.MappingProxyType)):
            self._all(f"{kind.__qualname__}:{len(value)}", (part for item in value.items() for part in item))
        elif isinstance(value, list):
            self._all(f"{kind.__qualname__}:{len(value)}", value)
        elif isinstance(value, bytearray):
            self.words.append(f"bytearray:{bytes(value)!r}")
        elif isinstance(value, (set, frozenset)):
            self._all(f"{kind.__qualname__}:{len(value)}", sorted(digest(member, self._known) for member in value))
        elif (called := _called(value)) is not None:
            self._all(*called)
        elif kind.__module__ in {"builtins", "_io", "_thread", "_asyncio"}:
            raise FormError(f"a process holds a {kind.__qualname__}, whose state cannot be compared: {value!r:.100}")
        else:
            slots = _slots(kind)
            if not slots and not hasattr(value, "__dict__"):
                raise FormError(
                    f"a process holds a {kind.__module__}.{kind.__qualname__}, which has no attributes to compare"
                )
            members = getattr(value, "__dict__", {})
            self._all(
                f"object:{kind.__module__}.{kind.__qualname__}:{len(members)}",
                (part for item in members.items() for part in item),
            )
            self._all("slots", (getattr(value, name, "unset") for name in slots))

    def _all(self, name: str, parts: Iterable[Any]) -> None:
        words = self.words
        words.append(name)
        for part in parts:
            kind = type(part)
            if kind in _PLAIN:
                words.append(f"{kind.__name__}:{part!r}")
            else:
                self.add(part)


@functools.cache
def _slots(kind: type) -> tuple[str, ...]:
    """Returns the names of all slots of the objects of a class."""
    names = []
    for cls in kind.__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            hidden = name.startswith("__") and not name.endswith("__")
            names.append(f"_{cls.__name__.lstrip('_')}{name}" if hidden else name)
    return tuple(name for name in names if name not in {"__dict__", "__weakref__"})


def _called(value: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Returns the name of a function with what it has captured or is bound to; None for another object."""
    if isinstance(value, types.MethodType):
        return "method", (value.__func__, value.__self__)
    if isinstance(value, types.BuiltinFunctionType):
        return f"built-in:{value.__qualname__}", (value.__self__,)
    if isinstance(value, functools.partial):
        return "partial", (value.func, value.args, value.keywords)
    if isinstance(value, types.FunctionType):
        captured = tuple(_content(cell) for cell in value.__closure__ or ())
        name = f"function:{value.__module__}.{value.__qualname__}:{value.__code__.co_firstlineno}:{len(captured)}"
        return name, (*captured, value.__defaults__, value.__kwdefaults__)
    return None


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that was not set yet
        return "unset"
