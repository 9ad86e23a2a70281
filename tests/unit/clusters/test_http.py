"""Requests over HTTP to one node."""

from __future__ import annotations

import asyncio
import itertools

import pytest

pytest.importorskip("aiohttp")
import aiohttp.connector
from aiohttp import web

from clusters.kit.http import Http


def test_a_connection_stays_open_however_slow_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library counts by the clock of the machine. In a simulation, a slow machine would see other connections."""
    looks = itertools.count()
    monkeypatch.setattr(aiohttp.connector, "monotonic", lambda: 600.0 * next(looks))
    peers = set()

    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="done")

    async def run() -> None:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        client = Http(f"http://127.0.0.1:{runner.addresses[0][1]}")
        assert [await client.send("POST", "/") for _ in range(3)] == [(200, b"done")] * 3
        await client.close()
        await runner.cleanup()

    asyncio.run(run())
    assert len(peers) == 1
