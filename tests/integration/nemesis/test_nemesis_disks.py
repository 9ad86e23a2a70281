"""Faults of disks and files on real nodes. They never affect the disk of this machine."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.faults import PlannedFault
from harness.targets import Helix, Named
from nemesis.errors import FaultError
from tests.integration.nemesis.bench import HOME, planned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.faults import Proof
    from nemesis.conductor import Conductor
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


@pytest.fixture
def volumes(bench: Bench) -> Iterator[Conductor]:
    """The servers' data on volumes of Labrys, with the conductor that made them."""
    conductor = bench.conductor()
    plan = [planned("power-loss", ["n1"])]
    for node in bench.cluster.nodes:
        bench.system.kill(node)
        bench.shell(node.name, f"mkdir -p {HOME}/data; echo kept > {HOME}/data/from-before")
    bench.run(conductor.prepare(plan))
    for node in bench.cluster.nodes:
        assert bench.shell(node.name, f"cat {HOME}/data/from-before") == "kept\n"
        bench.system.start(node)
    asyncio.run(bench.system.until_ready(bench.cluster.nodes, 5))
    yield conductor
    for node in bench.cluster.nodes:
        bench.system.kill(node)
    bench.run(conductor.release())
    for node in bench.cluster.nodes:
        assert "/dev/loop" not in bench.shell(node.name, "cat /proc/mounts")
        bench.system.start(node)
    asyncio.run(bench.system.until_ready(bench.cluster.nodes, 5))


def test_a_power_loss_takes_what_was_not_synced(bench: Bench, volumes: Conductor) -> None:
    """A synced file survives, an unsynced one does not; the process is killed and comes back."""
    bench.shell("n2", f"cd {HOME}/data; echo safe > safe; sync safe; head -c 50000 /dev/urandom > lost")
    fault = planned("power-loss", ["n2"])

    async def work() -> Proof:
        await volumes.begin(fault)
        try:
            return await volumes.prove(fault)
        finally:
            await volumes.end(fault)
            await volumes.heal()

    proof = bench.run(work())
    assert proof.effective, proof.reason
    assert proof.measured["volumes"]["n2"]["files_changed"] >= 1
    assert bench.shell("n2", f"cat {HOME}/data/safe") == "safe\n"
    assert bench.shell("n2", f"cd {HOME}/data; [ ! -s lost ] && echo gone") == "gone\n"
    assert "ext4" in bench.shell("n2", f"grep {HOME}/data /proc/mounts"), (
        "healing keeps the volume while the run goes on"
    )
    bench.assert_clean()


def test_a_process_can_outlive_its_disk(bench: Bench, volumes: Conductor) -> None:
    """A sync of a new write fails while the process still runs; afterwards the process comes back on a whole volume."""
    fault = planned("power-loss", ["n3"], after=2.0)
    writes = f"cd {HOME}/data; while touch w && sync w; do sleep 0.05; done 2>/dev/null"
    tries = f"{writes}; kill -0 $(cat {HOME}/pid) && echo outlived"

    async def work() -> tuple[Proof, str]:
        failed = asyncio.create_task(asyncio.to_thread(bench.shell, "n3", tries))
        await volumes.begin(fault)
        try:
            return await volumes.prove(fault), await failed
        finally:
            await volumes.end(fault)
            await volumes.heal()

    proof, said = bench.run(work())
    assert proof.effective, proof.reason
    assert said == "outlived\n"
    bench.assert_clean()


def test_a_disk_can_stall_before_it_is_gone(bench: Bench, volumes: Conductor) -> None:
    """Writes before the stall reach the disk without a sync; the write that waits in it fails, and leaves nothing."""
    fault = planned("power-loss", ["n3"], stall=1.0)
    writes = f"cd {HOME}/data; i=1; while echo x > w$i; do i=$((i+1)); sleep 0.05; done 2>/dev/null; echo $i"

    async def work() -> tuple[Proof, int]:
        first_failed = asyncio.create_task(asyncio.to_thread(bench.shell, "n3", writes))
        await asyncio.sleep(0.5)
        await volumes.begin(fault)
        try:
            return await volumes.prove(fault), int(await first_failed)
        finally:
            await volumes.end(fault)
            await volumes.heal()

    proof, first_failed = bench.run(work())
    assert proof.effective, proof.reason
    assert first_failed > 1
    kept = bench.shell("n3", f"cd {HOME}/data; cat w* | wc -l; ls w* | wc -l").split()
    assert kept == [str(first_failed - 1)] * 2
    bench.assert_clean()


def through(bench: Bench, conductor: Conductor, kind: str, node: str) -> Proof:
    """Carries out a fault with the conductor that prepared the nodes."""

    async def work() -> Proof:
        await conductor.begin(planned(kind, [node]))
        try:
            return await conductor.prove(planned(kind, [node]))
        finally:
            await conductor.end(planned(kind, [node]))
            await conductor.heal()

    proof: Proof = bench.run(work())
    return proof


def test_a_crash_takes_the_data_out_of_memory(bench: Bench, volumes: Conductor) -> None:
    """The restart must read its files from disk; the process is another one, and the data are whole."""
    before = {node.name: bench.system.process_state(node) for node in bench.cluster.nodes}
    sum_before = bench.shell("n2", f"cd {HOME}/data; head -c 3000000 /dev/urandom > big; cksum < big")
    proof = through(bench, volumes, "crash", "n2")
    assert proof.effective, proof.reason
    cached = proof.measured["page_cache"]["n2"]
    assert cached["before_kb"] >= 2900
    assert cached["after_kb"] < 300
    assert bench.shell("n2", f"cksum < {HOME}/data/big") == sum_before
    after = {node.name: bench.system.process_state(node) for node in bench.cluster.nodes}
    assert {name for name in before if before[name] != after[name]} == {"n2"}
    bench.assert_clean()


def test_a_crash_of_data_that_stay_in_memory_has_no_proof(bench: Bench) -> None:
    """Without a volume, the files of a local node are in memory: dropping the cache of the machine does not touch them."""
    bench.shell("n4", f"head -c 3000000 /dev/urandom > {HOME}/data/big")
    _, proof, _ = bench.through(planned("crash", ["n4"]))
    bench.shell("n4", f"rm {HOME}/data/big")
    assert not proof.effective
    assert proof.measured["page_cache"]["n4"]["after_kb"] >= 2900
    assert proof.measured["vanished"] == ["n4"]


@pytest.mark.parametrize("kind", ["crash", "power-loss", "disk-full"])
def test_a_volume_without_files_of_the_process_has_no_proof(bench: Bench, volumes: Conductor, kind: str) -> None:
    """A system that names the wrong folder as its data would lose nothing: only files of Labrys were seen."""
    bench.shell("n3", f"rm -rf {HOME}/data/*")
    proof = through(bench, volumes, kind, "n3")
    assert not proof.effective
    assert "has a file there" in proof.reason or "0 kB of n3's data were in memory" in proof.reason
    bench.assert_clean()


def test_a_full_disk_refuses_writes_until_it_is_healed(bench: Bench, volumes: Conductor) -> None:
    """The volume is full, other file systems are not, and the volume has space again afterwards."""
    fault = planned("disk-full", ["n3"])

    async def work() -> Proof:
        await volumes.begin(fault)
        try:
            proof = await volumes.prove(fault)
            assert (
                bench.shell("n3", f"dd if=/dev/zero of={HOME}/data/x bs=4k count=1 2>&1 | grep -c 'No space'; true")
                == "1\n"
            )
            bench.shell("n3", "dd if=/dev/zero of=/srv/elsewhere bs=64k count=1 2>/dev/null; rm /srv/elsewhere")
        finally:
            await volumes.end(fault)
        return proof

    proof = bench.run(work())
    assert proof.effective, proof.reason
    bench.shell("n3", f"dd if=/dev/zero of={HOME}/data/x bs=4k count=1 2>/dev/null")
    bench.assert_clean()


def test_disk_faults_are_refused_without_a_volume(bench: Bench) -> None:
    """Without a volume, the fault neither fills nor shuts down the node's disk."""
    for kind in ("disk-full", "power-loss"):

        async def work(fault: PlannedFault) -> None:
            conductor = bench.conductor()
            with pytest.raises(FaultError, match="not on a volume of ours"):
                await conductor.begin(fault)
            await conductor.end(fault)

        bench.run(work(planned(kind, ["n1"])))
        bench.assert_clean()


def test_the_next_start_takes_away_the_volumes_of_a_dead_run(bench: Bench) -> None:
    """A new conductor removes volumes of an earlier run."""
    node = bench.node("n5")
    bench.system.kill(node)
    bench.run(bench.conductor().prepare([planned("disk-full", ["n5"])]))
    bench.system.start(node)
    bench.run(bench.conductor().heal())
    for other in bench.cluster.nodes:
        assert "/dev/loop" not in bench.shell(
            other.name, "cat /proc/mounts; losetup -j /var/lib/labrys/volumes/echo.img"
        )
    bench.assert_clean()


@pytest.mark.parametrize("kind", ["file-truncate", "file-bitflip"])
def test_a_damaged_file_is_read_back(bench: Bench, kind: str) -> None:
    """The damage is in the written part, not in the zeros after it; the same numbers damage the same bytes."""
    log = f"{HOME}/data/log/0001"
    make = (
        f"rm -rf {HOME}/data/*; mkdir -p {HOME}/data/log; seq 1 5000 > {log}; truncate -s 1M {log}; "
        f": > {HOME}/data/empty; cp {log} /srv/before"
    )
    seen = []
    for _ in range(2):
        bench.shell("n4", make)
        own: dict[str, Any] = {"seed": 7} if kind == "file-bitflip" else {}
        begun, proof, _ = bench.through(planned(kind, ["n4"], pick=0.3, **own))
        assert proof.effective, proof.reason
        assert begun.details["damage"]["n4"]["file"] == log
        seen.append(bench.shell("n4", f"cmp -l /srv/before {log} 2>&1 | head -n 20; stat -c %s {log}"))
    assert seen[0] == seen[1]
    written = len("".join(f"{i}\n" for i in range(1, 5001)))
    if kind == "file-truncate":
        assert int(seen[0].splitlines()[-1]) == written - 1024
    else:
        changed = [int(line.split()[0]) for line in seen[0].splitlines()[:-1]]
        assert len(changed) == 8
        assert max(changed) <= written


@pytest.mark.parametrize("share", [(), ("n1", "n2", "n3", "n4", "n5")])
def test_a_part_of_a_file_goes_to_another_place(bench: Bench, share: tuple[str, ...]) -> None:
    """The record names both places, and only they differ. A helical fault damages other parts on each node."""
    log = f"{HOME}/data/log"
    for name in share or ("n4",):
        bench.shell(name, f"rm -rf {HOME}/data/*; seq 1 2000 > {log}; cp {log} /srv/before")
    own: dict[str, Any] = {"chunks": 3, "chunk_bytes": 100, "pick": 0.0, "seed": 5}
    fault = (
        replace(planned("file-copy", ["n4"], **own), target=Helix()) if share else planned("file-copy", ["n4"], **own)
    )
    begun, proof, _ = bench.through(fault)
    assert proof.effective, proof.reason
    for number, name in enumerate(share or ("n4",)):
        damage = begun.details["damage"][name]
        before, after = bench.shell(name, "cat /srv/before"), bench.shell(name, f"cat {log}")
        meant = before
        for at, source in zip(damage["at"], damage["from"], strict=True):
            moved = before[source : source + min(100, len(before) - at)]  # the last part is shorter
            meant = meant[:at] + moved + meant[at + len(moved) :]
        assert (damage["file"], len(damage["at"]), after) == (log, 3, meant)
        assert not share or {at // 100 % len(share) for at in damage["at"]} == {number}
    bench.assert_clean()


@pytest.mark.parametrize("chunk_bytes", [0, 8])
def test_a_file_gets_its_earlier_content(bench: Bench, chunk_bytes: int) -> None:
    """The whole file, or one part of it, is what it was before the process went on to write. No copy stays on the node."""
    log = f"{HOME}/data/log"
    bench.shell("n4", f"rm -rf {HOME}/data/*; printf 'aaaaaaaabbbbbbbb' > {log}; echo same > {HOME}/data/other")
    fault = planned("file-rollback", ["n4"], back=1.0, pick=0.0, seed=1, chunk_bytes=chunk_bytes)
    write = f"sleep 0.6; printf 'cccccccccccccccc and more' > {log}"

    async def work() -> Proof:
        writing = asyncio.create_task(asyncio.to_thread(bench.shell, "n4", write))
        conductor = bench.conductor()
        await conductor.begin(fault)
        try:
            await writing
            return await conductor.prove(fault)
        finally:
            await conductor.end(fault)

    proof = bench.run(work())
    assert proof.effective, proof.reason
    after = bench.shell("n4", f"cat {log}")
    parts = {"aaaaaaaacccccccc and more", "ccccccccbbbbbbbb and more"}
    assert after in (parts if chunk_bytes else {"aaaaaaaabbbbbbbb"})
    assert bench.shell("n4", "ls -A /var/lib/labrys/earlier").strip() == ""
    bench.assert_clean()


def test_files_are_damaged_on_a_minority_at_most(bench: Bench) -> None:
    """The nemesis refuses to damage a third of five nodes, for any plan."""
    bench.shell("n1", f"echo data > {HOME}/data/file")
    bench.shell("n2", f"echo data > {HOME}/data/file")

    async def work() -> None:
        conductor = bench.conductor()
        first = PlannedFault(
            id=1, kind="file-bitflip", target=Named(("n1", "n2")), start_s=0, end_s=9, options={"flips": 1}
        )
        await conductor.begin(first)
        await conductor.end(first)
        with pytest.raises(FaultError, match="is refused: the plan damages files on n1, n2, n3"):
            await conductor.begin(planned("file-truncate", ["n3"]))

    bench.run(work())
    bench.assert_clean()
