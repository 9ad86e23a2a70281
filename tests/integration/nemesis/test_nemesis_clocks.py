"""Faults of the clock, with a `date` that keeps its own offset: the clock of this machine is never touched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nemesis.conductor import Conductor
from nemesis.errors import FaultError
from tests.integration.nemesis.bench import Versatile, planned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.capabilities import Capabilities
    from harness.faults import Proof
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


FAKE_DATE = """#!/bin/sh
offset=$(cat /srv/offset 2>/dev/null || echo 0)
now=$(/usr/bin/date +%s.%N)
case "$1" in
-s) awk -v to="${2#@}" -v now="$now" 'BEGIN { printf "%.6f", to - now }' > /srv/offset.new; mv /srv/offset.new /srv/offset;;
*) awk -v o="$offset" -v now="$now" 'BEGIN { printf "%.6f\\n", now + o }';;
esac
"""


class OwnClocks(Versatile):
    """The cluster as if its nodes had clocks of their own."""

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the true ones, and a clock for each."""
        return {
            name: replace(can, available=can.available | {"clock"})
            for name, can in self._cluster.capabilities().items()
        }


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("clock-skew", {"offset_ms": -90_000}),
        ("clock-skew", {"offset_ms": 700}),
        ("clock-strobe", {"delta_ms": 5000, "period_ms": 40}),
    ],
)
def test_clocks_are_set_aside_and_put_back(bench: Bench, kind: str, options: dict[str, int]) -> None:
    """With a `date` that keeps its own offset, for these nodes share this machine's clock, which is never touched."""
    fault = planned(kind, ["n1", "n3"], **options)
    refused = bench.conductor()

    async def refuse() -> None:
        with pytest.raises(FaultError, match="needs clock on every node"):
            await refused.begin(fault)

    bench.run(refuse())
    for node in bench.cluster.nodes:
        bench.cluster.remote(node).write("/usr/local/sbin/date", FAKE_DATE, mode=0o755)
        assert bench.shell(node.name, "command -v date").strip() == "/usr/local/sbin/date"
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
            assert abs(float(bench.shell(name, "cat /srv/offset"))) < 0.1
        assert bench.shell("n2", "cat /srv/offset 2>/dev/null || echo untouched") == "untouched\n"
    finally:
        for node in bench.cluster.nodes:
            bench.shell(node.name, "rm -f /usr/local/sbin/date /srv/offset")
    assert proof.effective, proof.reason
    bench.assert_clean()
