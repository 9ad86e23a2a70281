"""One register, or several registers that change together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from checker.errors import ModelError, Unsuited
from checker.identity import plain_name, same
from checker.models.base import Call, Code, Inconsistent, NativeModel, Numbers
from checker.models.opcodes import CAS, CAS_FAIL, READ, TXN, WRITE
from checker.words import value_text

if TYPE_CHECKING:
    from checker.models.base import State
    from checker.models.rows import Rows
    from harness.op import Value

NilRead: TypeAlias = Literal["any", "exact"]
FailedCas: TypeAlias = Literal["drop", "observe"]

_READ_MICRO: Final = 0
_WRITE_MICRO: Final = 1
_READ_ANY_MICRO: Final = 2


class Register(NativeModel):
    """`read` and `write`."""

    name: ClassVar[str] = "register"
    family: ClassVar[str] = "register"
    functions: ClassVar[tuple[str, ...]] = ("read", "write")

    def __init__(self, initial: Value = None, *, nil_read: NilRead = "exact") -> None:
        """Makes the model.

        Args:
            initial: The initial value.
            nil_read: Whether a read that returned nil observed nil (exact), or observed nothing (any, as in knossos).
        """
        self.initial = initial
        self.nil_read = nil_read

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f == "read":
            if self.silent(op) or same(op.result, state):
                return state
            return Inconsistent(f"can't read {value_text(op.result)} from register {value_text(state)}")
        if op.f == "write":
            return op.argument
        raise self._unknown(op)

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return {"value": state}

    def initial_code(self, numbers: Numbers) -> list[int]:
        """See `NativeModel`."""
        return [numbers(self.initial)]

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        if op.f == "read":
            return None if self.silent(op) else Code(READ, numbers(op.result))
        if op.f == "write":
            return Code(WRITE, numbers(op.argument))
        raise self._unknown(op)

    def code_rows(self, f: str, rows: Rows) -> None:
        """See `NativeModel`."""
        if f == "read":
            seen = rows.ok & ~rows.without_result if self.nil_read == "any" else rows.ok
            rows.put(seen, READ, rows.numbers(rows.result, seen))
        elif f == "write":
            rows.put(rows.possible, WRITE, rows.numbers(rows.argument, rows.possible))
        else:
            raise Unsuited

    def silent(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read" and (not op.ok or (op.result is None and self.nil_read == "any"))

    def _unknown(self, op: Call) -> ModelError:
        return ModelError(f"model {self.name}: expected one of {', '.join(self.functions)}, found {value_text(op.f)}")


class CasRegister(Register):
    """`read`, `write`, and `cas` of `[expected, new]`."""

    name: ClassVar[str] = "cas-register"
    functions: ClassVar[tuple[str, ...]] = ("read", "write", "cas")

    def __init__(self, initial: Value = None, *, nil_read: NilRead = "exact", failed_cas: FailedCas = "drop") -> None:
        """Makes the model.

        Args:
            initial: The initial value.
            nil_read: As in `Register`.
            failed_cas: Whether a failed cas is left out (drop, as in knossos), or observed that the value was not the expected
                one (observe, as in porcupine's model).
        """
        super().__init__(initial, nil_read=nil_read)
        self.failed_cas = failed_cas
        self.keeps_failed = frozenset({"cas"}) if failed_cas == "observe" else frozenset()

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        if op.f != "cas":
            return super().step(state, op)
        expected, new = self._pair(op)
        matches = same(expected, state)
        if op.failed:
            return (
                Inconsistent(f"CAS from {value_text(expected)} to {value_text(new)} can't fail on {value_text(state)}")
                if matches
                else state
            )
        return (
            new
            if matches
            else Inconsistent(f"can't CAS {value_text(state)} from {value_text(expected)} to {value_text(new)}")
        )

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read" or op.failed

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        if op.f != "cas":
            return super().code(op, numbers)
        expected, new = self._pair(op)
        return Code(CAS_FAIL, numbers(expected)) if op.failed else Code(CAS, numbers(expected), numbers(new))

    def code_rows(self, f: str, rows: Rows) -> None:
        """See `NativeModel`."""
        if f != "cas":
            super().code_rows(f, rows)
            return
        rows.put(rows.possible, CAS, *rows.pairs(rows.argument, rows.possible))
        if f in self.keeps_failed:
            rows.put(rows.failed, CAS_FAIL, rows.pairs(rows.argument, rows.failed)[0])

    def _pair(self, op: Call) -> tuple[Value, Value]:
        argument = op.argument
        if not isinstance(argument, Sequence) or isinstance(argument, str) or len(argument) != 2:
            hint = (
                "; --keyed takes it as a key, the expected and the new value, in EDN and JSON"
                if isinstance(argument, Sequence) and not isinstance(argument, str) and len(argument) == 3
                else ""
            )
            raise ModelError(
                f"model {self.name}: expected [expected, new] as the value of cas, found {value_text(argument)}{hint}"
            )
        return argument[0], argument[1]


class MultiRegister(NativeModel):
    """Several registers by name; `txn` executes a list of [read, name, value] and [write, name, value] atomically.

    The value tells a transaction; its function may have another name.
    """

    name: ClassVar[str] = "multi-register"
    family: ClassVar[str] = "multi-register"

    def __init__(self, initial: Mapping[Value, Value] | None = None, *, nil_read: NilRead = "exact") -> None:
        """Makes the model.

        Args:
            initial: Registers and their initial values; other registers hold nil.
            nil_read: As in `Register`.
        """
        given = initial if initial is not None else {}
        if not isinstance(given, Mapping):
            raise ModelError(
                f"model {self.name}: expected a map of registers as the initial state, found {value_text(given)}"
            )
        self.initial = tuple(sorted(((plain_name(name), value) for name, value in given.items()), key=itemgetter(0)))
        self.nil_read = nil_read

    def step(self, state: State, op: Call) -> State | Inconsistent:
        """See `Model`."""
        values = dict(state)
        for kind, register, value in self._micros(op):
            if kind == _WRITE_MICRO:
                values[register] = value
            elif kind == _READ_MICRO and not same(values.get(register), value):
                return Inconsistent(f"{value_text(values.get(register))} ≠ {value_text(value)}")
        return tuple(sorted(values.items(), key=itemgetter(0)))

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return all(kind != _WRITE_MICRO for kind, _, _ in self._micros(op))

    def describe(self, state: State) -> Mapping[str, Value]:
        """See `Model`."""
        return dict(state)

    def initial_code(self, numbers: Numbers) -> list[int]:
        """See `NativeModel`."""
        assert isinstance(numbers, _Registers)  # noqa: S101 - see `numbers` below
        return [numbers(value) for value in numbers.values]

    def numbers(self) -> Numbers:
        """See `NativeModel`."""
        return _Registers(dict(self.initial))

    def code(self, op: Call, numbers: Numbers) -> Code | None:
        """See `NativeModel`."""
        assert isinstance(numbers, _Registers)  # noqa: S101 - see `numbers` above
        items: list[int] = []
        for kind, register, value in self._micros(op):
            items += (kind, numbers.register(register), numbers(value))
        return Code(TXN, items=tuple(items))

    def _micros(self, op: Call) -> list[tuple[int, str, Value]]:
        value = op.value
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise ModelError(
                f"model {self.name}: expected a list of operations, found {value_text(op.f)} {value_text(value)}"
            )
        micros: list[tuple[int, str, Value]] = []
        for micro in value:
            if not isinstance(micro, Sequence) or isinstance(micro, str) or len(micro) != 3:
                raise ModelError(
                    f"model {self.name}: expected [read or write, register, value], found {value_text(micro)}"
                )
            kind, register, inner = plain_name(micro[0]), plain_name(micro[1]), micro[2]
            if kind in {"write", "w"}:
                micros.append((_WRITE_MICRO, register, inner))
            elif kind in {"read", "r"}:
                unknown = inner is None and (not op.ok or self.nil_read == "any")
                micros.append((_READ_ANY_MICRO if unknown else _READ_MICRO, register, inner))
            else:
                raise ModelError(
                    f"model {self.name}: expected read or write in a transaction, found {value_text(micro)}"
                )
        return micros


class _Registers(Numbers):
    """Numbers for values, and separate ones for registers."""

    def __init__(self, values: dict[str, Value]) -> None:
        super().__init__()
        self._places = {name: index for index, name in enumerate(values)}
        self.values = list(values.values())

    def register(self, name: str) -> int:
        """Returns the register's place; a new register holds nil initially."""
        if name not in self._places:
            self._places[name] = len(self._places)
            self.values.append(None)
        return self._places[name]
