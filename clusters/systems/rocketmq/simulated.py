"""RocketMQ's controllers in the simulator: the released jars, all controllers in one JVM, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from clusters.kit.jvm import JvmGroup, maven_build
from clusters.sim.jvm.disk import DATA
from clusters.sim.jvm.system import COMPILER, simulated
from clusters.systems.dledger.sim_remoting import RemotingNodes, remoting
from clusters.systems.rocketmq import settings
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import Consensus
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.sim.host import Factory
    from clusters.systems.rocketmq.options import ControllerOptions
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.traits import LogLine

STARTER: Final = "rocketmq-starter.jar"
STARTER_VERSION: Final = "0.1.0"
SOURCES: Final = Path(__file__).parent / "starter"
CONFIG: Final = "controller.conf"  # in the folder of the node
LOGBACK: Final = "rocketmq-logback-"  # writes files in threads of its own; the starter has another log


def starter(say: Callable[[str], object]) -> Artifact:
    """Returns the jar that starts a controller in the simulator; builds it if the cache lacks it.

    Raises:
        InfrastructureError: It cannot be built.
    """
    return maven_build(
        "rocketmq-starter", STARTER_VERSION, SOURCES, "package", "-DskipTests", product=f"target/{STARTER}",
        files=("pom.xml", "src/main/**/*"), tools=(settings.MAVEN, COMPILER),
    ).artifact(say)  # fmt: skip


class SimRocketMQController(RemotingNodes, RocketMQController):
    """Controllers on DLedger in the simulator, with the options, clients and checks of real nodes."""

    main = "io.labrys.rocketmq.Simulated"
    until_ready = JvmGroup.until_ready
    log_lines: ClassVar[Mapping[str, LogLine]] = simulated(
        {name: line for name, line in RocketMQController.log_lines.items() if not name.startswith("jraft")}
    )

    def __init__(self, cluster: Cluster, options: ControllerOptions, workload: str) -> None:
        if options.consensus is not Consensus.DLEDGER:
            raise InputError(
                f"--cluster sim has controllers on dledger only, not on {options.consensus}; use --consensus dledger, or "
                "another --cluster"
            )
        super().__init__(cluster, options, workload)
        self.controllers = self.processes.controllers = replace(self.controllers, open=self.open_connection)

    @classmethod
    def build(cls, options: ControllerOptions, say: Callable[[str], object]) -> Artifact:
        """Builds the simulator and the starter, if the cache lacks them. Returns the released jars, which are under test."""
        remoting(say)
        starter(say)
        return RocketMQController.build(options, say)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the release, of its consensus library and of the simulator."""
        return {**RocketMQController.versions(self), **self.simulator_versions()}

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the patterns of real nodes, and the line of a process that ended by itself."""
        return (*RocketMQController.fatal_log_patterns(self), *RemotingNodes.fatal_log_patterns(self))

    def jars(self) -> Sequence[Path]:
        """Returns the starter, the remoting and the released jars, without those of Logback."""
        released = sorted(path for path in self.artifact.path.glob("*.jar") if not path.name.startswith(LOGBACK))
        return (starter(lambda _: None).path / STARTER, self.remoting_jar, *released)

    def node_arguments(self, node: Node, directory: str, log_directory: str) -> Sequence[str]:  # noqa: ARG002
        """Returns the arguments of a controller: its configuration file, which `factory` writes."""
        return ("-c", f"{node.name}/{CONFIG}")

    def factory(self, node: Node) -> Factory:
        """Writes the configuration file of a node. Returns the function that makes its process."""
        folder = self.java().directory / node.name
        folder.mkdir(exist_ok=True)
        own = {"rocketmqHome": node.name, **self.processes.settings(node, f"{node.name}/{DATA}")}
        (folder / CONFIG).write_text(settings.text(own), encoding="utf-8")
        return super().factory(node)
