"""DLedger in the simulator: the released jar, its nodes in one JVM, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from clusters.kit.jvm import JvmGroup
from clusters.sim.jvm.system import simulated
from clusters.systems.dledger.nodes import JAR, DLedgerNodes
from clusters.systems.dledger.sim_remoting import RemotingNodes, remoting
from clusters.systems.dledger.system import DLedgerSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.traits import LogLine


class SimDLedgerNodes(RemotingNodes, DLedgerNodes):
    """Nodes of the library in the simulator. A subclass is also a system on real nodes, whose options and checks it keeps."""

    main = "io.labrys.dledger.Simulated"
    until_ready = JvmGroup.until_ready

    def __init__(self, cluster: Cluster, options: Any, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self.group = replace(self.group, open=self.open_connection)

    @classmethod
    def build(cls, options: Any, say: Callable[[str], object]) -> Artifact:
        """Builds the node and the simulator, if the cache lacks them. Returns the node, which is under test."""
        remoting(say)
        return DLedgerNodes.build(options, say)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the library, of the simulator and of Java."""
        return {**DLedgerNodes.versions(self), **self.simulator_versions()}

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the patterns of real nodes, and the line of a process that ended by itself."""
        return (*DLedgerNodes.fatal_log_patterns(self), *RemotingNodes.fatal_log_patterns(self))

    def jars(self) -> Sequence[Path]:
        """Returns the jar of the node, and that of the remoting."""
        return (self.artifact.path / JAR, self.remoting_jar)

    def node_arguments(self, node: Node, directory: str, log_directory: str) -> Sequence[str]:
        """Returns the arguments of a node."""
        return self.options_of(node, directory, log_directory)


class SimDLedger(SimDLedgerNodes, DLedgerSystem):
    """DLedger nodes with registers, in the simulator."""

    log_lines: ClassVar[Mapping[str, LogLine]] = simulated(DLedgerSystem.log_lines)
