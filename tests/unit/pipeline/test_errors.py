"""What Spark, Java and Python workers say when something fails, in one line of bounded length."""

from __future__ import annotations

from results.pipeline.errors import words_of


class Thrown:
    """A Java exception, as the bridge to Java shows it."""

    def __init__(self, name: str, message: str | None, cause: Thrown | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        """Returns name and message."""
        return self._name if self._message is None else f"{self._name}: {self._message}"

    def getMessage(self) -> str | None:  # noqa: N802
        """Returns the message."""
        return self._message

    def getCause(self) -> Thrown | None:  # noqa: N802
        """Returns what it comes from."""
        return self._cause


class Bridged(Exception):  # noqa: N818 - stands for the bridge's own
    """An error with a Java exception in it."""

    def __init__(self, thrown: object) -> None:
        super().__init__("An error occurred while calling o42.\n: with a stack of a hundred lines")
        self.java_exception = thrown


def test_the_first_and_the_last_of_a_chain_are_told() -> None:
    """What is between them, and stacks, are not; what the first one says already is not said twice."""
    root = Thrown("java.io.IOException", "disk full\n\tat some.Place")
    assert words_of(Bridged(Thrown("Outer", "it failed", Thrown("Middle", "m", root)))) == "Outer: it failed disk full"
    assert words_of(Bridged(Thrown("Outer", "it failed: disk full", root))) == "Outer: it failed: disk full"
    assert words_of(Bridged(Thrown("Outer", "it failed", Thrown("Silent", None)))) == "Outer: it failed Silent"


def test_of_a_worker_the_reason_is_told() -> None:
    """Python puts it last."""
    said = "An exception was thrown from the Python worker.\nTraceback (most recent call last):\n  x\nValueError: bad\n"
    assert words_of(RuntimeError(said)) == "An exception was thrown from the Python worker. ValueError: bad"


def test_nothing_that_goes_wrong_hides_the_error() -> None:
    """Java may be gone, a chain may be a circle, and an error may have no text."""

    class Gone(Thrown):
        def toString(self) -> str:  # noqa: N802
            raise ConnectionError("no Java any more")

    circle = Thrown("A", "a")
    circle._cause = circle
    assert words_of(Bridged(Gone("A", "a"))) == "An error occurred while calling o42."
    assert words_of(Bridged(circle)) == "A: a"
    assert words_of(KeyError()) == "KeyError"
    assert len(words_of(RuntimeError("x" * 10_000))) < 1000
