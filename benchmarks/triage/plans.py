"""The options of the hunts for the known defects of DLedger, of its log and of RocketMQ's controllers, by their findings.

A hunt that draws from all kinds of faults meets most of these defects in none of a hundred runs. No plan moves clocks, and only
those whose defect needs it take power: DLedger measures all waits with the wall clock and syncs no entry before it answers, and
no mend covers that. So no plan of the log takes power: a set misses each entry that is lost.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

RESTARTS: Final = (
    "--nemesis leader-kill,leader-pause --fault-on 4-8 --fault-off 0.5-2 --heartbeat-ms 200 --rate 10 --time-limit 40"
)
SNAPSHOTS: Final = (
    "--nodes 3 --nemesis leadership-transfer --fault-on 1-2 --fault-off 3-4 --fault-quiet 1-2 --snapshot-threshold 20 "
    "--rate 10 --time-limit 12"
)
BEHIND: Final = (
    "--nodes 3 --nemesis partition-leader --fault-options partition-leader.side=majority --fault-on 18-20 --fault-off 5-8 "
    "--read-mode raft-log --routing leader --rate 25 --time-limit 50"
)
LATE: Final = (
    "--page-faults 0.3 --nemesis packet-delay,partition-one-way:majority,partition-random-node:leader --fault-on 0.5-3 "
    "--fault-off 0.3-2 --fault-quiet 1-3 --fault-wait 0.5 --fault-options packet-delay.delay_ms=100,packet-delay.jitter_ms=50 "
    "--rate 2 --time-limit 12 --hot-share 1"
)
TRUNCATION: Final = (
    "--nodes 3 --nemesis leader-kill,partition-leader --fault-on 2-5 --fault-off 0.5-2 --fault-quiet 1-3 "
    "--snapshot-threshold 50 --rate 20 --time-limit 30"
)
MANY: Final = (
    "--nodes 3 --nemesis kill,pause,partition-random-halves,leadership-transfer --fault-on 2-5 --fault-off 0.5-2 "
    "--fault-quiet 1-3 --snapshot-threshold 20 --rate 20 --time-limit 30"
)
AGAIN: Final = (
    "--nemesis leader-kill,partition-random-node:leader --fault-on 0.4-1.2 --fault-off 0.02-0.3 --fault-quiet 1-3 "
    "--rate 20 --time-limit 12"
)
KILLS: Final = (
    "--nodes 3 --nemesis kill,leader-kill --fault-on 0.3-1.5 --fault-off 0.1-0.5 --fault-quiet 0.5-2 "
    "--rate 10 --time-limit 15"
)
POWER: Final = (
    "--nodes 3 --nemesis power-loss --fault-on 0.3-1.5 --fault-off 0.1-0.5 --fault-quiet 0.5-2 "
    "--rate 10 --time-limit 15"
)
FULL: Final = (
    "--nodes 3 --nemesis disk-full:all,disk-full:majority,kill,pause,leadership-transfer --fault-on 1-4 --fault-off 0.5-2 "
    "--fault-quiet 1-3 --rate 20 --time-limit 20"
)
TRANSFERS: Final = (
    "--nodes 3 --nemesis leader-kill,leadership-transfer --fault-on 0.5-3 --fault-off 0.3-2 --fault-quiet 0.5-2 "
    "--heartbeat-ms 200 --rate 20 --time-limit 15"
)
ELECTIONS: Final = (
    "--workload elect --nodes 3 --nemesis kill,partition-leader,pause --fault-on 2-8 --fault-off 0.5-3 --fault-quiet 0.5-3 "
    "--rate 5 --time-limit 16"
)
DEAD_TARGETS: Final = (
    "--workload elect --process-read-event --nodes 3 --nemesis kill,partition-leader,pause,leadership-transfer "
    "--fault-on 1-6 --fault-off 0.2-1.5 --fault-quiet 0.5-2 --rate 12 --time-limit 20"
)
FULL_CONTROLLERS: Final = (
    "--workload broker-id --nodes 3 --nemesis disk-full:all,disk-full:majority,kill,pause --fault-on 2-5 --fault-off 0.5-2 "
    "--fault-quiet 1-3 --rate 20 --time-limit 20"
)
POWER_CONTROLLERS: Final = (
    "--workload broker-id --nodes 3 --nemesis power-loss:all,power-loss:majority,leader-kill --fault-on 0.3-1.5 "
    "--fault-off 0.1-0.5 --fault-quiet 0.5-2 --rate 10 --time-limit 15"
)

OF_NODES: Final[Mapping[int, str]] = MappingProxyType(
    {
        1: RESTARTS,
        2: SNAPSHOTS,
        4: BEHIND,
        6: LATE,
        **dict.fromkeys((7, 9, 10, 11, 12, 13), TRUNCATION),
        **dict.fromkeys((8, 14, 15), MANY),
        16: AGAIN,
        17: KILLS,
        18: POWER,
        **dict.fromkeys((19, 20), FULL),
    }
)
# By system and by the number of the finding.
PLANS: Final[Mapping[str, Mapping[int, str]]] = MappingProxyType(
    {
        "dledger": MappingProxyType({number: f"--workload register {plan}" for number, plan in OF_NODES.items()}),
        "dledger-log": MappingProxyType(
            {
                number: f"--workload set {plan if plan in {AGAIN, KILLS, FULL} else TRANSFERS}"
                for number, plan in OF_NODES.items()
            }
        ),
        "rocketmq-controller": MappingProxyType(
            {
                **dict.fromkeys((4, 9), ELECTIONS),
                **dict.fromkeys((6, 13), FULL_CONTROLLERS),
                **dict.fromkeys((10, 11), POWER_CONTROLLERS),
                12: DEAD_TARGETS,
            }
        ),
    }
)
