"""Tasks of foreign code end, and what they raise is seen: asyncio prints no traceback about it."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, NoReturn

import pytest

from harness.errors import InfrastructureError
from harness.tasks import MARGIN_S, answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LIMIT_S = 0.05 - MARGIN_S


async def deaf() -> NoReturn:
    """Ignores each cancellation."""
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            continue


async def late() -> None:
    """Answers its cancellation with an error."""
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        raise ValueError("too late") from None


async def closing() -> None:
    """Answers its end with an error."""
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            continue
        except GeneratorExit:
            raise OSError("no room") from None


async def failing() -> None:
    """Fails at once."""
    raise LookupError("no such node")


@pytest.mark.parametrize(
    ("asked", "error", "logged"),
    [
        ([deaf], InfrastructureError, []),
        ([late], InfrastructureError, ["a task that was cancelled ended with ValueError: too late"]),
        ([closing], InfrastructureError, ["a task that was closed ended with OSError: no room"]),
        ([failing, failing], LookupError, []),
        ([failing, late, deaf], LookupError, ["a task that was cancelled ended with ValueError: too late"]),
    ],
)
def test_asyncio_has_nothing_to_say(
    asked: list[Callable[[], Awaitable[None]]],
    error: type[Exception],
    logged: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither of a task that nobody asked for its exception, nor of one that did not end."""

    async def main() -> None:
        with pytest.raises(error) as raised:
            await answers("it", [make() for make in asked], LIMIT_S)
        notes = getattr(raised.value, "__notes__", [])
        assert notes == ["also: LookupError: no such node"] * (asked.count(failing) - 1)
        del raised
        gc.collect()
        await asyncio.sleep(0.01)

    caplog.set_level(logging.INFO)
    asyncio.run(main())
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name in {"asyncio", "harness.tasks"}] == logged
