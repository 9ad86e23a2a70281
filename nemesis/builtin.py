"""The built-in kinds of faults, each with its actor for each world, and the triggers.

The aliases of kinds are their names in Jepsen and OpenChaos. pyproject.toml registers kinds and triggers as entry points in the
groups `labrys.faults` and `labrys.triggers`, as any other package does.
"""

from __future__ import annotations

from harness.faults import RARE_MESSAGE
from nemesis import conditions, status_conditions
from nemesis import targets as tgt
from nemesis.disksteps import DiskStepMade
from nemesis.faults import (
    clock,
    disk,
    disk_error,
    egress,
    files,
    leadership,
    loss,
    partitions,
    process,
    succession,
    threads,
)
from nemesis.kinds import Kind, Variant
from nemesis.packets import PacketPassed
from nemesis.real.clock import SkewOnNodes, StrobeOnNodes
from nemesis.real.disk import DiskFullOnNodes, PowerLossOnNodes, WipeOnNodes
from nemesis.real.egress import CorruptOnNodes, DelayOnNodes, DuplicateOnNodes, RateOnNodes, ReorderOnNodes
from nemesis.real.files import FileOnNodes, RollBackOnNodes
from nemesis.real.leadership import TransferOnNodes
from nemesis.real.loss import LossOnNodes
from nemesis.real.partition import PartitionOnNodes
from nemesis.real.process import CrashOnNodes, KillOnNodes, PauseOnNodes
from nemesis.real.succession import KillLeadersOnNodes
from nemesis.real.threads import HoldThreadsOnNodes
from nemesis.simulated import calls, kernel, machine, network
from nemesis.simulated import process as effects
from nemesis.triggers import TriggerKind

TRIGGERS = (
    TriggerKind(name="log-line", condition=conditions.LogLineAppears),
    TriggerKind(name="new-leader", condition=status_conditions.NewLeader),
    TriggerKind(name="term-change", condition=status_conditions.TermChange),
    TriggerKind(name="follower-behind", condition=status_conditions.FollowerBehind),
    TriggerKind(name="applied-above-commit", condition=status_conditions.AppliedAboveCommit),
    TriggerKind(name="ok-after-failure", condition=conditions.OkAfterFailure),
    TriggerKind(name="operation", condition=conditions.OperationSucceeds),
    TriggerKind(name="disk-step", condition=DiskStepMade),
    TriggerKind(name="packet", condition=PacketPassed),
    TriggerKind(name=RARE_MESSAGE, condition=conditions.RareMessageSent),
)

KINDS = (
    Kind(
        name="partition-random-node",
        fault=partitions.RandomNode,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.ONE,
        aliases=("partition-node",),
    ),
    Kind(
        name="partition-random-halves",
        fault=partitions.RandomHalves,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.RANDOM,
        aliases=("random-partition", "partition"),
    ),
    Kind(
        name="partition-halves",
        fault=partitions.Halves,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.ALL,
    ),
    Kind(
        name="partition-majorities-ring",
        fault=partitions.Ring,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.RANDOM,
        aliases=("majorities-ring",),
    ),
    Kind(
        name="bridge",
        fault=partitions.Bridge,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.RANDOM,
        aliases=("partition-bridge",),
    ),
    Kind(
        name="partition-leader",
        fault=partitions.Leader,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.LEADER,
        aliases=("leader-partition",),
    ),
    Kind(
        name="partition-one-way",
        fault=partitions.OneWay,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.RANDOM,
        aliases=("partition-asymmetric",),
    ),
    Kind(
        name="partition-fixed",
        fault=partitions.Fixed,
        on_nodes=PartitionOnNodes,
        simulated=network.Cut,
        target=tgt.ALL,
        aliases=("fixed-partition",),
        in_all=False,
    ),
    Kind(
        name="kill",
        fault=process.Kill,
        on_nodes=KillOnNodes,
        simulated=effects.Killed,
        target=tgt.RANDOM,
        aliases=("random-kill",),
        variants=(
            Variant(name="leader-kill", target=tgt.LEADER, aliases=("kill-leader",)),
            Variant(name="minor-kill", target=tgt.MINORITY),
            Variant(name="major-kill", target=tgt.MAJORITY),
            Variant(name="fixed-kill", target=None),
        ),
    ),
    Kind(
        name="leaders-kill",
        fault=succession.KillLeaders,
        on_nodes=KillLeadersOnNodes,
        simulated=effects.KilledLeaders,
        target=tgt.LEADER_MINORITY,
        in_all=False,
    ),
    Kind(
        name="crash",
        fault=process.Crash,
        on_nodes=CrashOnNodes,
        simulated=effects.Killed,
        target=tgt.RANDOM,
        aliases=("random-crash",),
    ),
    Kind(
        name="pause",
        fault=process.Pause,
        on_nodes=PauseOnNodes,
        simulated=effects.Paused,
        target=tgt.RANDOM,
        aliases=("hammer-time", "random-suspend", "suspend"),
        variants=(
            Variant(name="leader-pause", target=tgt.LEADER, aliases=("leader-suspend",)),
            Variant(name="minor-pause", target=tgt.MINORITY, aliases=("minor-suspend",)),
            Variant(name="major-pause", target=tgt.MAJORITY, aliases=("major-suspend",)),
            Variant(name="fixed-pause", target=None, aliases=("fixed-suspend",)),
        ),
    ),
    Kind(name="thread-stall", fault=threads.HoldThreads, on_nodes=HoldThreadsOnNodes, target=tgt.RANDOM, in_all=False),
    Kind(
        name="packet-loss",
        fault=loss.Loss,
        on_nodes=LossOnNodes,
        simulated=network.Loss,
        target=tgt.RANDOM,
        aliases=("random-loss", "loss", "flaky"),
        variants=(
            Variant(name="minor-loss", target=tgt.MINORITY),
            Variant(name="major-loss", target=tgt.MAJORITY),
            Variant(name="fixed-loss", target=None),
        ),
    ),
    Kind(
        name="packet-delay",
        fault=egress.Delay,
        on_nodes=DelayOnNodes,
        simulated=network.Delay,
        target=tgt.RANDOM,
        aliases=("random-delay", "delay", "slow"),
        variants=(
            Variant(name="minor-delay", target=tgt.MINORITY),
            Variant(name="major-delay", target=tgt.MAJORITY),
            Variant(name="fixed-delay", target=None),
        ),
    ),
    Kind(
        name="packet-duplicate",
        fault=egress.Duplicate,
        on_nodes=DuplicateOnNodes,
        simulated=network.Duplicate,
        target=tgt.RANDOM,
    ),
    Kind(
        name="packet-reorder",
        fault=egress.Reorder,
        on_nodes=ReorderOnNodes,
        simulated=network.Reorder,
        target=tgt.RANDOM,
    ),
    Kind(
        name="packet-corrupt",
        fault=egress.Corrupt,
        on_nodes=CorruptOnNodes,
        simulated=network.Corrupt,
        target=tgt.RANDOM,
    ),
    Kind(name="packet-rate", fault=egress.Rate, on_nodes=RateOnNodes, simulated=kernel.Rate, target=tgt.RANDOM),
    Kind(
        name="clock-skew",
        fault=clock.Skew,
        on_nodes=SkewOnNodes,
        simulated=machine.ClockAside,
        target=tgt.RANDOM,
        aliases=("clock-bump", "clock-scrambler"),
    ),
    Kind(
        name="clock-strobe",
        fault=clock.Strobe,
        on_nodes=StrobeOnNodes,
        simulated=machine.ClockToAndFro,
        target=tgt.RANDOM,
    ),
    Kind(name="clock-drift", fault=clock.Drift, simulated=machine.ClockDrifts, target=tgt.RANDOM, in_all=False),
    Kind(name="wipe", fault=disk.Wipe, on_nodes=WipeOnNodes, simulated=effects.Wiped, target=tgt.ONE, in_all=False),
    Kind(
        name="power-loss", fault=disk.PowerLoss, on_nodes=PowerLossOnNodes, simulated=effects.PowerLost, target=tgt.ONE
    ),
    Kind(name="disk-full", fault=disk.DiskFull, on_nodes=DiskFullOnNodes, simulated=machine.Full, target=tgt.ONE),
    Kind(name="disk-slow", fault=disk.DiskSlow, simulated=kernel.SlowSyncs, target=tgt.ONE, in_all=False),
    Kind(name="disk-error", fault=disk_error.DiskError, simulated=calls.FailingCalls, target=tgt.ONE, in_all=False),
    Kind(
        name="file-truncate",
        fault=files.Truncate,
        on_nodes=FileOnNodes,
        simulated=effects.Damaged,
        target=tgt.ONE,
        aliases=("truncate-file",),
        in_all=False,
    ),
    Kind(
        name="file-bitflip",
        fault=files.BitFlip,
        on_nodes=FileOnNodes,
        simulated=effects.Damaged,
        target=tgt.ONE,
        aliases=("bitflip",),
        in_all=False,
    ),
    Kind(
        name="file-copy",
        fault=files.Copy,
        on_nodes=FileOnNodes,
        simulated=effects.Damaged,
        target=tgt.ONE,
        aliases=("copy-file-chunks",),
        in_all=False,
    ),
    Kind(
        name="file-rollback",
        fault=files.RollBack,
        on_nodes=RollBackOnNodes,
        simulated=effects.RolledBack,
        target=tgt.ONE,
        aliases=("restore-file-chunks",),
        in_all=False,
    ),
    Kind(
        name="leadership-transfer",
        fault=leadership.Transfer,
        on_nodes=TransferOnNodes,
        target=tgt.FOLLOWER,
        aliases=("transfer",),
    ),
)
