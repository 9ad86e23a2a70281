"""Answers of clients, to be compared with what is expected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.op import Invocation, Ok

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.client import Client
    from harness.op import Outcome, Value


def without_order(outcome: Outcome) -> Outcome:
    """Returns an answer without the order that the system tells: nobody knows before at which index an entry lands."""
    return replace(outcome, order=None) if isinstance(outcome, Ok) else outcome


async def asked(client: Client, invocations: Iterable[Invocation]) -> list[Outcome]:
    """Carries out operations one after the other, and closes the client. Returns the outcomes without their orders."""
    try:
        return [without_order(await client.invoke(invocation)) for invocation in invocations]
    finally:
        await client.close()


async def asked_by_key(client: Client, *operations: tuple[str, str, Value]) -> list[Outcome]:
    """Carries out operations `(f, key, value)` as `asked` does."""
    return await asked(client, (Invocation(f, value, key) for f, key, value in operations))
