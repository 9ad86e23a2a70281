"""The factor for slow nodes multiplies time limits while it is set."""

from __future__ import annotations

import threading

import pytest

from harness.slowness import nodes_slower_by, slowed


def test_limits_are_multiplied_while_the_factor_is_set() -> None:
    """The innermost context counts; each context restores the factor before it, also after an error."""
    assert slowed(0.5) == 0.5
    with nodes_slower_by(8):
        assert slowed(0.5) == 4.0
        with pytest.raises(ValueError, match=r"stop at 1\.0"), nodes_slower_by(2):
            raise ValueError(f"stop at {slowed(0.5)}")
        assert slowed(0.5) == 4.0
    assert slowed(0.5) == 0.5


def test_other_threads_have_the_factor() -> None:
    """Commands on nodes run in other threads."""
    seen: list[float] = []
    with nodes_slower_by(3):
        thread = threading.Thread(target=lambda: seen.append(slowed(1.0)))
        thread.start()
        thread.join()
    assert seen == [3.0]
