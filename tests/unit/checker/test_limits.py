"""An endless search stops at its limits, at Ctrl-C and at a cancellation, and reports the cause."""

from __future__ import annotations

import signal
import threading
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker import _kernel
from checker.errors import ModelError
from checker.models import Call, Inconsistent, Model
from harness.verdict import Verdict
from tests.deciding import analysis, check_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.op import Operation

ALGORITHMS = ("auto", "search", "linear", "wgl", "competition")


@pytest.fixture
def endless(operation: Callable[..., Operation]) -> list[Operation]:
    """Returns sixty crashed additions of even numbers, an odd one too late, and a read of a sum that no subset has."""
    random = Random(1)
    adds = [operation(p, "add", 2 * random.randrange(2**30, 2**40), p, None) for p in range(60)]
    late = operation(99, "add", 1, 300, None)
    return [*adds, operation(100, "read", None, 200, 201, 7 + 2 * 2**41), late]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_time_limit_makes_a_verdict_unknown(endless: list[Operation], algorithm: str) -> None:
    """The result has the cause, and the limit is kept."""
    began = time.monotonic()
    result = analysis("counter", endless, algorithm=algorithm, time_limit=0.2)
    assert (result.valid, result.cause) == (Verdict.UNKNOWN, "timeout")
    assert time.monotonic() - began < 5
    assert result.op == endless[-2]
    assert result.explanation.startswith("The time limit ended the search; it got as far as process 100's read of")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_memory_limit_makes_a_verdict_unknown(endless: list[Operation], algorithm: str) -> None:
    """The result has the cause."""
    result = analysis("counter", endless, algorithm=algorithm, memory_limit=8 << 20, time_limit=60)
    assert (result.valid, result.cause) == (Verdict.UNKNOWN, "out-of-memory")


class _Sum(Model):
    """The counter as a Python model."""

    initial = 0

    def step(self, state: int, op: Call) -> int | Inconsistent:
        if op.f == "add":
            return state + int(op.argument)
        return state if op.result == state else Inconsistent("another sum")


@pytest.mark.parametrize("model", ["counter", _Sum()], ids=["kernel", "python"])
def test_a_signal_ends_a_search_at_once(endless: list[Operation], model: str | Model) -> None:
    """The check soon raises the signal handler's exception."""

    def handler(*_: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    began = time.monotonic()
    try:
        with pytest.raises(InterruptedError):
            analysis(model, endless, time_limit=60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 5


def test_another_thread_can_cancel_a_search(endless: list[Operation]) -> None:
    """The verdict is unknown then."""
    cancellation = _kernel.Cancellation()
    threading.Timer(0.1, cancellation.cancel).start()
    result = analysis("counter", endless, time_limit=60, cancellation=cancellation)
    assert (result.valid, result.cause) == (Verdict.UNKNOWN, "cancelled")


def test_other_python_code_runs_during_a_search(endless: list[Operation]) -> None:
    """The check releases the interpreter lock."""
    count = 0
    done = threading.Event()

    def spin() -> None:
        nonlocal count
        while not done.is_set():
            count += 1

    thread = threading.Thread(target=spin)
    thread.start()
    analysis("counter", endless, algorithm="linear", time_limit=0.3)
    done.set()
    thread.join()
    assert count > 1000


def test_what_a_model_raises_comes_out_of_the_check(operation: Callable[..., Operation]) -> None:
    """An error in a user's model does not become a verdict."""

    class Broken(Model):
        def step(self, state: Any, op: Call) -> Any:
            raise ZeroDivisionError(op.f)

    with pytest.raises(ZeroDivisionError, match="boom"):
        analysis(Broken(), [operation(0, "boom", None, 0, 1)])


def test_states_must_be_hashable(operation: Callable[..., Operation]) -> None:
    """A model with states that cannot be compared is refused with a message."""

    class Unhashable(Model):
        def step(self, state: Any, op: Call) -> Any:
            return _NotHashable()

    with pytest.raises(ModelError, match="expected hashable states"):
        analysis(Unhashable(), [operation(0, "x", None, 0, 1)])


class _NotHashable:
    __hash__ = None  # type: ignore[assignment]  # the case under test


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "magic"}, "expected one of the algorithms auto, zones"),
        ({"time_limit": 0}, "expected a positive time limit"),
        ({"time_limit": float("nan")}, "expected a positive time limit"),
        ({"memory_limit": -1}, "expected a positive memory limit"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, Any], message: str) -> None:
    """The message has the expected content."""
    with pytest.raises(ModelError, match=message):
        analysis("register", [], **options)
    with pytest.raises(ModelError, match=message):
        check_keys("register", [], **options)


def test_an_algorithm_that_does_not_apply_says_so(operation: Callable[..., Operation]) -> None:
    """Zones need unique values. Requested by name, they give no verdict without them, and no other algorithm takes over."""
    history = [operation(0, "write", 1, 0, 1), operation(0, "write", 1, 2, 3)]
    result = analysis("register", history, algorithm="zones")
    assert (result.valid, result.cause) == (Verdict.UNKNOWN, "unsuited")
    assert "a value is written twice" in result.explanation


def test_a_counter_that_may_leave_64_bits_is_refused(operation: Callable[..., Operation]) -> None:
    """The kernel counts in 64 bits, so a possible overflow is an error with a message, never a wrong verdict."""
    history = [operation(p, "add", 2**62 - 1, p, None) for p in range(3)]
    with pytest.raises(ModelError, match=r"model counter: expected counts of at most 64 bits, but they may come to"):
        analysis("counter", history)
