"""How the processes of RocketMQ are started: name servers, controllers and brokers, each a JVM of its own.

All of them run classes of the released jars, without any code of Labrys. Each has its own folders for data and logs. RocketMQ
writes its logs below `user.home`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from harness.daemon import Daemon
from harness.process_clock import LogClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact

MODULE: Final = Path(__file__).parent / "jars"
LOG_ZONE_S: Final = 8 * 3600  # RocketMQ writes the time of GMT+8 into its logs, wherever it runs
JVM_FLAGS: Final = (
    *jvm.JVM_FLAGS,
    "-Xms96m",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:MaxDirectMemorySize=128m",
    "-XX:ActiveProcessorCount=2",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    # Hessian writes the snapshots of a controller on jraft, and needs access to these packages. Without it, the first snapshot
    # fails, and every controller stops serving for good.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
)
JAVA: Final = jvm.java("running RocketMQ")
MAVEN: Final = jvm.maven("getting RocketMQ's jars")


def jars(version: str, say: Callable[[str], object]) -> Artifact:
    """Gets the released jars of a version with Maven, if the cache does not have them; compiles nothing."""
    return jvm.released_jars("rocketmq", version, MODULE, tools=(MAVEN,)).artifact(say)


def versions(artifact: Artifact, library: str) -> Mapping[str, str]:
    """Returns the versions of the release and of a library in its jars.

    Args:
        artifact: The jars.
        library: The name of the library's jar, without its version.
    """
    numbers = [jar.stem.removeprefix(f"{library}-") for jar in artifact.path.glob(f"{library}-[0-9]*.jar")]
    return {"rocketmq": artifact.provenance.version, library: ", ".join(numbers) or "unknown"}


def log_dir(role: str) -> str:
    """Returns the folder of a role's logs."""
    return f"/var/log/labrys/rocketmq-{role}"


def data_dir(role: str) -> str:
    """Returns the folder of a role's data."""
    return f"/var/lib/labrys/rocketmq-{role}"


def launch_log(role: str) -> str:
    """Returns the path of the output of a role's JVM."""
    return f"{log_dir(role)}/{role}_launch.log"


def own_log(role: str, name: str) -> str:
    """Returns the path of a log that the process itself writes, e.g. `broker`."""
    return f"{log_dir(role)}/logs/rocketmqlogs/{name}.log"


def text(settings: Mapping[str, object]) -> str:
    """Returns the content of a configuration file, by the names of its settings."""
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def daemon(
    role: str,
    main: str,
    folder: str,
    settings: Mapping[str, object],
    *,
    ports: Sequence[int],
    logs: Sequence[str],
    memory: Sequence[str],
) -> Daemon:
    """Returns the process of a role.

    Args:
        role: The role.
        main: The class that it runs.
        folder: The folder of the jars on a node.
        settings: The configuration file, by the names of its settings.
        ports: The ports that it listens on.
        logs: The names of the logs that it writes itself; the first has the time of each line.
        memory: The flags of the JVM for its memory.
    """
    config = f"/etc/labrys/rocketmq-{role}.conf"
    return Daemon(
        role=role,
        argv=[
            "java", *JVM_FLAGS, *memory, f"-Duser.home={log_dir(role)}", f"-Drocketmq.home.dir={data_dir(role)}",
            # The jars have a configuration of logs for each program. Without this, a program may take that of another one.
            f"-Drmq.logback.configurationFile=rmq.{role}.logback.xml", "-cp", f"{folder}/*", main, "-c", config,
        ],
        pattern=rf"^java .*{re.escape(main)}",
        ports=ports,
        data_dir=data_dir(role),
        log_files=(launch_log(role), *(own_log(role, name) for name in logs)),
        config_files={config: text(settings)},
        java_packages=("org.apache.rocketmq", "io.openmessaging.storage.dledger", "com.alipay.sofa.jraft"),
        log_clock=LogClock(
            path=own_log(role, logs[0]),
            pattern=r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ",
            form="%Y-%m-%d %H:%M:%S",
            resolution_s=1.0,
            utc_offset_s=LOG_ZONE_S,
        ),
    )  # fmt: skip
