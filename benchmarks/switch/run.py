"""The cost of the switch of a local cluster: throughput and latency between nodes, beside the bridge in the same run.

Rows: one TCP stream, and round trips of a small message, between two nodes; and the requests of `redis-benchmark` to a Redis on
another node, if it is installed. Bridge and switch take turns, and each figure is the best of some. In the last columns, a rule
on both links draws for each packet, and changes none.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.local import LocalCluster
from clusters.local.namespaces import find_program
from harness.switch import Rule
from harness.world import Disturbance

if TYPE_CHECKING:
    from collections.abc import Callable

ENDS: Final = Path(__file__).with_name("ends.py")
PYTHON: Final = os.path.realpath(sys.executable)
PORT: Final = 6390
BRIDGE, SWITCH, RULED = "bridge", "switch", "switch with a rule"
WARM_S: Final = 0.5
TIMEOUT_S: Final = 120.0
IDLE: Final = Rule(seed=1, disturbance=Disturbance(lose=0.0))
REQUESTS: Final = re.compile(r"(\d+\.\d+) requests per second")


class Nodes:
    """Two nodes with the servers on the second one."""

    def __init__(self, cluster: LocalCluster, seconds: float) -> None:
        self.cluster = cluster
        self.seconds = seconds
        self.client, self.server = (cluster.remote(node) for node in cluster.nodes)
        self.address = cluster.nodes[1].address
        self.redis = find_program("redis-benchmark") is not None and find_program("redis-server") is not None
        self.server.write("/root/ends.py", ENDS.read_text())
        self.client.write("/root/ends.py", ENDS.read_text())
        self.server.run(f"setsid {PYTHON} /root/ends.py serve >/root/log 2>&1 </dev/null &")
        if self.redis:
            options = f"--port {PORT} --bind 0.0.0.0 --protected-mode no --save '' --appendonly no"
            self.server.run(f"setsid redis-server {options} >/root/redis.log 2>&1 </dev/null &")
        time.sleep(2 * WARM_S)

    def carry(self, means: str) -> None:
        """Lets the bridge or the switch carry the packets."""
        if means == BRIDGE:
            self.cluster.switch.stop()
        else:
            self.cluster.switch.start()
            links = [("n1", "n2"), ("n2", "n1")]
            self.cluster.switch.set(dict.fromkeys(links, IDLE)) if means == RULED else self.cluster.switch.clear()
        time.sleep(WARM_S)

    def measure(self, what: str) -> float:
        """Returns one figure of `ends.py`."""
        command = f"{PYTHON} /root/ends.py {what} {self.address} {self.seconds:g}"
        return float(self.client.run(command, timeout_s=TIMEOUT_S).stdout)

    def requests(self, clients: int) -> float:
        """Returns the SET requests in a second of so many clients."""
        count = int(self.seconds * 10_000 * min(clients, 5))
        command = f"redis-benchmark -h {self.address} -p {PORT} -t set -n {count} -c {clients} -q"
        rates = REQUESTS.findall(self.client.run(command, timeout_s=TIMEOUT_S).stdout)
        return float(rates[-1])


def main() -> None:
    """Prints a table of the figures, with the ratio to the bridge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each measurement takes")
    parser.add_argument("--rounds", type=int, default=3, help="how many of each; the best counts")
    given = parser.parse_args()
    with LocalCluster.up(f"bench-{os.getpid()}", nodes=2) as cluster, cluster.entered():
        nodes = Nodes(cluster, given.seconds)
        rows: list[tuple[str, Callable[[], float], bool]] = [
            ("one TCP stream, Mbit/s", lambda: nodes.measure("stream"), True),
            ("round trip of 64 bytes, microseconds", lambda: nodes.measure("turns"), False),
        ]
        if nodes.redis:
            rows += [
                ("redis SET/s, 1 client", lambda: nodes.requests(1), True),
                ("redis SET/s, 50 clients", lambda: nodes.requests(50), True),
            ]
        best: dict[tuple[str, str], float] = {}
        for _ in range(given.rounds):
            for means in (BRIDGE, SWITCH, RULED):
                nodes.carry(means)
                for what, measured, more_is_better in rows:
                    figure = measured()
                    best[what, means] = (max if more_is_better else min)(figure, best.get((what, means), figure))
        print(f"{'between two nodes':<38} {BRIDGE:>10} {SWITCH:>10} {'ratio':>6} {RULED:>20} {'ratio':>6}")
        for what, _, _ in rows:
            bridge, switch, ruled = (best[what, means] for means in (BRIDGE, SWITCH, RULED))
            print(
                f"{what:<38} {bridge:>10.0f} {switch:>10.0f} {switch / bridge:>6.2f} {ruled:>20.0f} {ruled / bridge:>6.2f}"
            )


if __name__ == "__main__":
    main()
