"""Faults of the clock, with a `date` that has its own offset: the clock of this machine never changes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.capabilities import Capabilities
from harness.daemon import ENVIRONMENT
from harness.errors import InputError
from harness.service import first_status
from harness.targets import names_of
from nemesis.conductor import Conductor
from nemesis.errors import FaultError
from tests.integration.nemesis.bench import Echo, Versatile, planned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.daemon import Daemon
    from harness.faults import Proof
    from harness.node import Node
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


# The offset in /srv/offset is in microseconds. bash adds it to its readings. `date -s` writes it, late if /srv/late is not 0.
SETTING_DATE = """#!/bin/sh
[ "$1" = -s ] || exit 1
sleep $(cat /srv/late)
now=$(/usr/bin/date +%s.%N)
awk -v to="${2#@}" -v now="$now" 'BEGIN { printf "%.0f", (to - now) * 1000000 }' > /srv/offset.new
mv /srv/offset.new /srv/offset
"""
READING_BASH = """#!/bin/sh
shift
program=$(printf '%s' "$1" | sed 's|${EPOCHREALTIME/\\[.,\\]/}|$((& + $(</srv/offset)))|')
shift
exec /usr/bin/bash -c "$program" "$@"
"""


class OwnClocks(Versatile):
    """The cluster with the capability of own clocks."""

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the real capabilities, plus a clock for each node."""
        return {
            name: replace(can, available=can.available | {"clock"})
            for name, can in self._cluster.capabilities().items()
        }


class NoClocks(Versatile):
    """The cluster without libfaketime."""

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the real capabilities without it."""
        return {
            name: Capabilities(
                available=can.available - {"faketime"}, missing={**can.missing, "faketime": "not installed"}
            )
            for name, can in self._cluster.capabilities().items()
        }


@pytest.fixture
def own_time(bench: Bench) -> Iterator[Conductor]:
    """The servers with their own clocks, and the conductor that prepared them."""
    if "faketime" not in bench.cluster.capabilities()["n1"].available:
        pytest.skip("libfaketime is not installed; `apt-get install faketime`")
    conductor = bench.conductor()
    for node in bench.cluster.nodes:
        bench.system.kill(node)
    bench.run(conductor.prepare([planned("clock-skew", ["n1"])]))
    for node in bench.cluster.nodes:
        bench.system.start(node)
    asyncio.run(bench.system.until_ready(bench.cluster.nodes, 5))
    yield conductor
    bench.run(conductor.release())
    for node in bench.cluster.nodes:
        assert "absent" in bench.shell(node.name, f"ls {ENVIRONMENT} 2>/dev/null || echo absent")
        bench.system.kill(node)
        bench.system.start(node)
    asyncio.run(bench.system.until_ready(bench.cluster.nodes, 5))


async def off_s(bench: Bench, name: str) -> float:
    """Requests a server's time over the network. Returns its difference to this machine's time."""
    status = await first_status(bench.system, bench.node(name), 2.0)
    assert status is not None
    assert status.details is not None
    return float(status.details["clock"]) - time.time()


@pytest.mark.parametrize(
    ("kind", "options", "late_s"),
    [
        ("clock-skew", {"offset_ms": -90_000}, 0.0),
        ("clock-skew", {"offset_ms": 700}, 0.4),
        ("clock-strobe", {"delta_ms": 5000, "period_ms": 40}, 0.0),
    ],
)
def test_clocks_are_set_aside_and_put_back(bench: Bench, kind: str, options: dict[str, Any], late_s: float) -> None:
    """The nodes share this machine's clock, which never changes, so `date` and `bash` have an offset of their own.

    A clock that is set late, as on a slow machine, is right in the end.
    """
    fault = planned(kind, ["n1", "n3"], **options)
    for node in bench.cluster.nodes:
        bench.cluster.remote(node).write("/usr/local/sbin/date", SETTING_DATE, mode=0o755)
        bench.cluster.remote(node).write("/usr/local/sbin/bash", READING_BASH, mode=0o755)
        bench.shell(node.name, f"echo 0 > /srv/offset; echo {late_s} > /srv/late")
        for program in ("date", "bash"):
            assert bench.shell(node.name, f"command -v {program}") == f"/usr/local/sbin/{program}\n"
    cluster = OwnClocks(bench.cluster, {node.name: node.address for node in bench.cluster.nodes})

    async def work() -> Proof:
        conductor = Conductor(cluster=cluster, system=bench.system)
        await conductor.begin(fault)
        try:
            return await conductor.prove(fault)
        finally:
            await conductor.end(fault)

    try:
        proof = bench.run(work())
        for name in ("n1", "n3"):
            assert abs(int(bench.shell(name, "cat /srv/offset"))) < 100_000
        assert bench.shell("n2", "cat /srv/offset") == "0\n"
    finally:
        for node in bench.cluster.nodes:
            bench.shell(node.name, "rm -f /usr/local/sbin/date /usr/local/sbin/bash /srv/offset /srv/late")
    assert proof.effective, proof.reason
    bench.assert_clean()


@pytest.mark.parametrize("offset_ms", [-90_000, 700, 200_000])
def test_a_process_alone_has_another_time(bench: Bench, own_time: Conductor, offset_ms: int) -> None:
    """Only the target's answers are ahead or behind during the fault, and the machine's clock stays right."""
    fault = planned("clock-skew", ["n1", "n3"], offset_ms=offset_ms)

    async def work() -> tuple[Proof, dict[str, float]]:
        begun = await own_time.begin(fault)
        assert begun.details["only_the_process"] == ["n1", "n3"]
        try:
            return await own_time.prove(fault), {name: await off_s(bench, name) for name in bench.names}
        finally:
            await own_time.end(fault)

    proof, seen = bench.run(work())
    assert proof.effective, proof.reason
    for name in bench.names:
        assert seen[name] == pytest.approx(offset_ms / 1000 if name in names_of(fault.target) else 0.0, abs=0.2)
    assert abs(bench.run(off_s(bench, "n1"))) < 0.2
    bench.assert_clean()


def test_a_process_sees_time_jump(bench: Bench, own_time: Conductor) -> None:
    """During a strobe, some of the process' answers are ahead and some are not; afterwards none is."""
    fault = planned("clock-strobe", ["n2"], delta_ms=5000, period_ms=40)

    async def answers() -> list[float]:
        """Repeats the request until both times occurred, since a busy machine can slow the jumps down."""
        seen: list[float] = []
        deadline_s = time.monotonic() + 20.0
        while len({off > 2.5 for off in seen}) < 2 and time.monotonic() < deadline_s:
            seen.append(await off_s(bench, "n2"))
        return seen

    async def work() -> tuple[Proof, list[float]]:
        await own_time.begin(fault)
        try:
            return await own_time.prove(fault), await answers()
        finally:
            await own_time.end(fault)

    proof, seen = bench.run(work())
    assert proof.effective, proof.reason
    assert 0 < sum(off > 2.5 for off in seen) < len(seen)
    assert abs(bench.run(off_s(bench, "n2"))) < 0.2
    bench.assert_clean()


def test_a_process_that_does_not_see_the_offset_has_no_proof(bench: Bench, own_time: Conductor) -> None:
    """The server has libfaketime in its memory, and asks the kernel for the time: the fault had no effect on this system."""

    class Steadfast(Echo):
        """A system that goes by what the kernel says about the time, as a Go program does."""

        clock_field = "kernel"
        resolution_s = 1.01

    conductor = Conductor(cluster=bench.cluster, system=Steadfast(bench.cluster))
    fault = planned("clock-skew", ["n1"], offset_ms=200_000)

    async def work() -> Proof:
        await conductor.begin(fault)
        try:
            return await conductor.prove(fault)
        finally:
            await conductor.end(fault)

    proof = bench.run(work())
    assert not proof.effective
    assert "expected +200.000 s" in proof.reason
    bench.assert_clean()


def test_a_static_program_is_refused_before_the_run(bench: Bench) -> None:
    """No library can be loaded into it, so no clock fault could have an effect."""
    program = "/usr/sbin/ldconfig"
    if "static" not in bench.shell("n1", f"ldd {program} 2>&1 || true") and "not a dynamic" not in bench.shell(
        "n1", f"ldd {program} 2>&1 || true"
    ):
        pytest.skip(f"{program} is not linked statically here")

    class Static(Echo):
        """A system with this program."""

        def daemon(self, node: Node) -> Daemon:
            """Returns a process of the program."""
            return replace(super().daemon(node), argv=(program,))

    conductor = Conductor(cluster=bench.cluster, system=Static(bench.cluster))
    with pytest.raises(InputError, match="n1: /usr/sbin/ldconfig, the echo, is linked statically"):
        bench.run(conductor.prepare([planned("clock-skew", ["n1"])]))
    assert "absent" in bench.shell("n1", f"ls {ENVIRONMENT} 2>/dev/null || echo absent")


def test_a_clock_that_cannot_be_set_is_no_fault(bench: Bench) -> None:
    """Without libfaketime, the kind is refused; a process without it is an error, and does not change."""
    fault = planned("clock-skew", ["n1"], offset_ms=5000)
    addresses = {node.name: node.address for node in bench.cluster.nodes}
    without = Conductor(cluster=NoClocks(bench.cluster, addresses), system=bench.system)

    async def refused(conductor: Conductor, why: str) -> None:
        with pytest.raises(FaultError, match=why):
            await conductor.begin(fault)
        await conductor.end(fault)

    bench.run(
        refused(
            without, "n1 lacks clock, which clock-.* needs: .*; it also lacks the alternative faketime: not installed"
        )
    )
    if "faketime" in bench.cluster.capabilities()["n1"].available:
        bench.run(refused(bench.conductor(), "libfaketime is not in its process"))
    bench.assert_clean()
