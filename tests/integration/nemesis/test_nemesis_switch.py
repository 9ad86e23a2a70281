"""Shaped packets on nodes whose kernel lacks the queueing disciplines: the switch does the same, and the receivers see it."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clusters.local import LocalCluster
from harness.capabilities import NETEM, TBF
from harness.clock import Clock
from harness.faults import Sight
from harness.history import MemoryHistory
from harness.switch import CONTROL, Happened, Rule, SwitchEnded
from harness.targets import AtTrigger
from nemesis.conductor import Conductor
from nemesis.real.loss import DATAGRAMS
from nemesis.triggers import parse_trigger
from tests.integration.nemesis.bench import planned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.faults import Begun, Fired
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


@pytest.fixture
def switched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The nodes, on any machine as on one without queueing disciplines; afterwards the bridge joins them again."""
    capabilities = {
        name: replace(can, available=can.available - {NETEM, TBF}, missing={NETEM: "hidden", TBF: "hidden"})
        for name, can in bench.cluster.capabilities().items()
    }
    monkeypatch.setattr(bench.cluster, "capabilities", lambda: capabilities)
    yield bench
    bench.cluster.switch.stop()


@pytest.mark.parametrize(
    ("kind", "options", "counter"),
    [
        ("packet-delay", {"delay_ms": 60, "jitter_ms": 10}, "delayed"),
        ("packet-duplicate", {"percent": 50}, "duplicated"),
        ("packet-reorder", {"percent": 25, "delay_ms": 30}, "ahead"),
        ("packet-corrupt", {"percent": 10}, "damaged"),
        ("packet-rate", {"kbit": 1000}, "limited"),
    ],
)
def test_the_receivers_and_the_switch_see_each_kind(
    switched: Bench, kind: str, options: dict[str, Any], counter: str
) -> None:
    """The counters of the receiving kernels show the effect, and those of the switch agree."""
    begun, proof, _ = switched.through(planned(kind, ["n3"], **options))
    assert begun.details is not None
    assert begun.details["discipline"] == "rules of the switch"
    assert proof.effective, proof.reason
    assert proof.measured["n3"]["switch"][counter] > 0


def test_single_links_of_one_direction(switched: Bench) -> None:
    """A delay hits what n3 sends to n1 and nothing else; a loss hits what n3 receives from n1, by rules for n1 alone."""
    begun, proof, _ = switched.through(planned("packet-delay", ["n3"], delay_ms=60, jitter_ms=0, peers="n1"))
    assert begun.details is not None
    assert begun.details["discipline"] == "rules of the switch"
    assert proof.effective, proof.reason
    counts = switched.cluster.switch.counts()
    assert counts["n3", "n1"]["delayed"] > 100
    assert [link for link, each in counts.items() if each["ruled"] and link != ("n3", "n1")] == []
    _, proof, ended = switched.through(planned("packet-loss", ["n3"], probability=0.5, peers="n1"))
    assert proof.effective, proof.reason
    assert proof.measured["delivery"]["n3"]["sent"] == DATAGRAMS
    assert ended is not None
    assert ended.effective


HOLDER = """
import sys, time
from clusters.local import LocalCluster
cluster = LocalCluster.attach(sys.argv[1], for_test=True)
cluster.switch.start()
print(cluster.switch._process.pid, flush=True)
time.sleep(60)
"""


def masters(cluster: LocalCluster) -> list[str]:
    """The devices in the bridge of a cluster."""
    with cluster.entered():
        shown = subprocess.run(
            ["ip", "-o", "link", "show", "master", "bridge"], capture_output=True, text=True, check=True
        )
    return sorted(line.split(": ")[1].split("@")[0] for line in shown.stdout.splitlines())


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that nobody waits for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def test_a_cut_link_and_a_killed_run_and_a_killed_switch(tmp_path: Path) -> None:
    """A cut stops one direction; a recording has the packets; the switch ends with its run; a killed one is repaired."""
    with LocalCluster.up(f"test-switch-{os.getpid()}", nodes=2) as cluster:
        knock = f"timeout 1.5 bash -c '</dev/tcp/{cluster.nodes[1].address}/22' && echo open || echo silent"

        def knocked(port: int = 22) -> str:
            with cluster.entered():
                return cluster.remote(cluster.nodes[0]).run(knock.replace("/22'", f"/{port}'")).stdout.strip()

        before = masters(cluster)
        cluster.switch.start()
        assert masters(cluster) == [CONTROL]
        assert knocked() == "open"
        cluster.switch.set({("n1", "n2"): Rule(seed=1, cut=True)})
        assert knocked() == "silent"
        assert cluster.switch.counts()["n1", "n2"]["cut"] > 0
        cluster.switch.clear()
        assert knocked() == "open"
        assert knocked(9) == "silent"  # nobody listens there
        cluster.switch.recording = recording = tmp_path / "the last.pcap"
        cluster.switch.stop()
        assert masters(cluster) == before
        recorded = recording.read_bytes()
        assert recorded[:4] == bytes.fromhex("4d3cb2a1")
        assert b"SSH-2.0-OpenSSH" in recorded
        assert cluster.switch.noted is not None
        noted = {(note.source, note.target, note.what) for note in cluster.switch.noted}
        assert {("n1", "n2", Happened.OPENED), ("n2", "n1", Happened.REFUSED)} <= noted
        assert ("n1", "n2", Happened.STALLED) in noted  # the attempt over the cut link, after a second

        for victim in ("run", "switch"):
            with subprocess.Popen(
                [sys.executable, "-c", HOLDER, cluster.name], stdout=subprocess.PIPE, text=True
            ) as holder:
                assert holder.stdout is not None
                pid = int(holder.stdout.readline())
                os.kill(holder.pid if victim == "run" else pid, signal.SIGKILL)
                deadline_s = time.monotonic() + 10
                while not ended(pid) and time.monotonic() < deadline_s:
                    time.sleep(0.02)
                assert ended(pid)
                assert masters(cluster) == (before if victim == "run" else [])
                holder.kill()
        cluster.close()
        again = LocalCluster.attach(cluster.name, for_test=True)
        assert masters(cluster) == before
        assert knocked() == "open"
        again.close()


SENDER = """
import socket, time
out = socket.socket(socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET, socket.SOCK_DGRAM)
for text in ["beat", "vote 1", "beat", "vote 2", "vote 3", "late"]:
    out.sendto(text.encode(), (ADDRESS, 4711))
    time.sleep(0.02)
"""


def test_a_fault_waits_for_a_packet(switched: Bench) -> None:
    """The switch counts the packets of a sort, names the n-th one, and lets those after it stand still."""
    trigger = parse_trigger("packet:2:n2:n3:vote:4711", 10.0)
    fault = replace(planned("pause", ["n2"]), target=AtTrigger(), trigger=trigger)
    script = SENDER.replace("ADDRESS", repr(switched.node("n3").address))

    async def work() -> tuple[Fired | None, Begun, Mapping[str, int]]:
        conductor = switched.conductor()
        await conductor.prepare([fault])
        sight = Sight(clock=Clock(asyncio.get_running_loop()), history=MemoryHistory())
        waiting = asyncio.ensure_future(conductor.wait(fault, sight))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(switched.shell, "n2", f"python3 -c {shlex.quote(script)}")
        fired = await waiting
        begun = await conductor.begin(fault)
        counts = switched.cluster.switch.counts()["n2", "n3"]
        await conductor.end(fault)
        await conductor.heal()
        return fired, begun, counts

    fired, begun, counts = switched.run(work())
    assert fired is not None
    assert fired.what.startswith("right after packet 2 from n2 to n3: 6 bytes, port ")
    assert fired.measured["counted"] == 2
    assert begun.targets == ("n2",)
    assert counts["frames"] >= 6
    assert counts["held_max_us"] > 50_000
    switched.assert_clean()


def test_a_run_learns_that_its_switch_has_ended(switched: Bench) -> None:
    """Healing gives the nodes their bridge again, and raises that the switch ended, so that no verdict hides it."""

    async def work() -> None:
        conductor = Conductor(cluster=switched.cluster, system=switched.system)
        await conductor.prepare([planned("packet-delay", ["n3"])])
        process = switched.cluster.switch._process
        assert process is not None
        process.kill()
        with pytest.raises(SwitchEnded, match="status -9"):
            await conductor.heal()
        assert not switched.cluster.switch.is_on
        await conductor.heal()
        await conductor.release()

    switched.run(work())
    switched.assert_clean()
