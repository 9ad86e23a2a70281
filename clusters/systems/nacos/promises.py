"""What Nacos promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.systems.nacos.options import NacosOptions, Writes
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_WORDS: Final = (
    "Labrys, clusters/systems/nacos/README.md, by the source of Nacos 0.8.0; "
    "no document of Nacos has a promise about reads"
)
CONTROL: Final = (
    " Without a health check, the leader waits for no follower; the test asks for it, as a negative control."
)


def promises(options: NacosOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    control = CONTROL if options.nacos_writes is Writes.LEADER else ""
    return {
        "register": Promise(
            sentence="The nodes hold the last acknowledged write in the end. Each node answers reads from its own state, "
            "which may be old. On a busy machine it does not keep this: "
            f"clusters/systems/nacos/findings/nacos-0.8.0.md.{control}",
            source=OWN_WORDS,
            options={"linearizable": False, "mix": "2:1:0"},
        )
    }
