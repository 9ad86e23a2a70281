"""Runs that go wrong: ended by kill -9 or Ctrl-C, or with a node that does not come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from clusters.heal import heal
from clusters.local import LocalCluster
from harness.errors import ExitCode
from harness.healing import CHAIN, UNDO_DIRECTORY
from nemesis.volume import attach
from tests.documents import is_proven

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.integration.nemesis.bench import Bench

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LOOK = f"""iptables -S | grep -c '^-N {CHAIN}' ; ls {UNDO_DIRECTORY} 2>/dev/null | wc -l
grep -l '^State:.T' /proc/[0-9]*/status 2>/dev/null | wc -l; grep -c '^/dev/loop' /proc/mounts; true"""
PROOFS_S = 5.0  # an interruption before it cuts a proof short, and the fault is then not proven
# A long partition, pause and kill at the same time; the power loss never begins, but its volumes exist.
FAULTS: list[dict[str, Any]] = [
    {"id": 0, "kind": "partition-halves", "target": ["n1"], "start_s": 1.0, "end_s": 90.0, "options": {}},
    {"id": 1, "kind": "pause", "target": ["n3"], "start_s": 1.0, "end_s": 90.0, "options": {}},
    {"id": 2, "kind": "kill", "target": ["n2"], "start_s": 1.0, "end_s": 90.0, "options": {}},
    {"id": 3, "kind": "power-loss", "target": ["n1"], "start_s": 80.0, "end_s": 90.0, "options": {}},
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Nodes that stay up between runs."""
    with LocalCluster.up(f"left-{os.getpid()}", nodes=3) as made:
        yield made


def found(cluster: LocalCluster) -> dict[str, tuple[int, ...]]:
    """Counts the chains, undo notes, stopped processes and mounted loop devices on each node."""
    with cluster.entered():
        said = {node.name: cluster.remote(node).run(LOOK).stdout.split() for node in cluster.nodes}
    return {node: tuple(map(int, counts)) for node, counts in said.items()}


def command(cluster: LocalCluster, store: Path, *options: str) -> list[str]:
    """The command line of a run on nodes that stay up."""
    where = ["--cluster-name", cluster.name, "--store", str(store), "--format", "json"]
    return [sys.executable, "-m", "cli", "test", *where, "--seed", "11", *options]


def in_the_middle(
    cluster: LocalCluster, directory: Path, faults: Sequence[dict[str, Any]], *options: str, on: int
) -> subprocess.Popen[str]:
    """Starts a run, and returns it when this number of its faults is on."""
    plan = {"format": "labrys-plan", "version": 3, "nodes": ["n1", "n2", "n3"], "seed": 11}
    path = directory / "plan.json"
    path.write_text(json.dumps({**plan, "time_limit_s": 100.0, "faults": faults}))
    process = subprocess.Popen(
        command(cluster, directory, "--plan", str(path), *(options or ("--time-limit", "100"))),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    history = directory / "latest" / "history.jsonl"
    deadline_s = time.monotonic() + 120
    while not (history.is_file() and history.read_text().count('"start-') == 2 * on):
        assert time.monotonic() < deadline_s, "the faults did not begin"
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    return process


def test_the_next_run_heals_what_a_killed_one_left(cluster: LocalCluster, tmp_path: Path) -> None:
    """A kill -9 leaves rules, notes, a stopped process and volumes; the next run first removes them."""
    process = in_the_middle(cluster, tmp_path, FAULTS, on=3)
    process.kill()
    process.communicate(timeout=30)

    left = found(cluster)
    assert all(chains == 2 and loops == 1 for chains, _, _, loops in left.values()), left
    assert left["n3"][1:3] == (2, 1), "the notes of partition and pause, and the stopped process"

    done = subprocess.run(
        command(cluster, tmp_path / "next", "--time-limit", "4", "--no-final-reads"),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == ExitCode.VALID, done.stderr
    assert set(found(cluster).values()) == {(0, 0, 0, 0)}


def test_an_interrupted_run_heals_all_that_is_on(cluster: LocalCluster, tmp_path: Path) -> None:
    """Ctrl-C while a partition, a pause and a kill are on: exit 130, and the nodes, which stay up, are clean."""
    process = in_the_middle(cluster, tmp_path, FAULTS, on=3)
    assert set(found(cluster).values()) != {(0, 0, 0, 0)}
    time.sleep(PROOFS_S)
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(timeout=150)

    assert process.returncode == ExitCode.INTERRUPTED, said
    document = json.loads(output)
    assert [is_proven(fault) for fault in document["faults"]] == [True, True, True], document["faults"]
    assert set(found(cluster).values()) == {(0, 0, 0, 0)}


def test_a_node_that_cannot_be_restarted_is_in_the_report(cluster: LocalCluster, tmp_path: Path) -> None:
    """The run continues and is invalid, since it did not recover; the fault's row has the output of the node's start."""
    kill = {"id": 0, "kind": "kill", "target": ["n2"], "start_s": 1.0, "end_s": 6.0, "options": {}}
    process = in_the_middle(cluster, tmp_path, [kill], "--time-limit", "8", "--recovery-timeout", "3", on=1)
    with cluster.entered():
        remote = cluster.remote(cluster.nodes[1])
        java = remote.run("command -v java").stdout.strip()
        remote.run(
            f"mv {java} {java}.away; printf '#!/bin/sh\\necho no java today\\nexit 1\\n' > {java}; chmod +x {java}"
        )
        try:
            output, said = process.communicate(timeout=150)
        finally:
            remote.run(f"mv {java}.away {java}")

    assert process.returncode == ExitCode.INVALID, said
    document = json.loads(output)
    (fault,) = document["faults"]
    assert is_proven(fault)
    assert "n2" in fault["error"]
    assert "no java today" in fault["error"]
    assert document["parts"]["recovered"]["valid"] is False
    assert document["counts"]["ok"] > 0
    assert "no java today" in (tmp_path / "latest" / "report.html").read_text()


def test_healing_a_cluster_takes_a_forgotten_volume_away(bench: Bench) -> None:
    """`labrys cluster heal` works without a run: it unmounts and removes the volume with the data."""
    node = bench.node("n3")
    remote = bench.cluster.remote(node)
    attach(remote, "/srv/forgotten", "forgotten")
    assert "/srv/forgotten ext4" in bench.shell("n3", "cat /proc/mounts")
    assert heal(remote, ours=True) == ["a volume under the data of a system"]
    assert "/srv/forgotten" not in bench.shell("n3", "cat /proc/mounts; losetup -a")
    assert heal(remote, ours=True) == []
