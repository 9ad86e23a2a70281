"""Drops packets on real nodes by packet tables.

This needs only the `statistic` match of the kernel, and no queueing discipline. The other nodes send datagrams, and the proof
compares their number with the target's UDP counters, and with the counters of the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults import Begun, Proof
from harness.slowness import slowed
from nemesis import packet_rules
from nemesis.datagrams import LEAST_TOLERANCE, Arrivals, Delivery, read_arrivals, send
from nemesis.errors import FaultError
from nemesis.grudges import talks
from nemesis.real.ruled import RulesOnNodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.node import Node
    from nemesis.faults.loss import Loss

DATAGRAMS = 150  # from each other node to each target
HEALED_DATAGRAMS = 20
HEALED_TIMEOUT_S = 10.0


class LossOnNodes(RulesOnNodes):
    """`packet-loss`."""

    fault: Loss

    async def begin(self) -> Begun:
        """Inserts the rules on every target: one that counts, then one that drops at random."""
        chance = f"-m statistic --mode random --probability {self.fault.probability:.6f}"

        def own(name: str) -> list[packet_rules.Rule]:
            others = [self.field.node(other) for other in self.fault.ends(name)]
            return [packet_rules.Rule(sources=others, drop=False), packet_rules.Rule(sources=others, match=chance)]

        await self.insert({name: own(name) for name in self.targets})
        details = {"probability": self.fault.probability, "problems": dict(self.problems)}
        return Begun(targets=self.targets, details=details)

    async def prove(self) -> Proof:
        """Sends datagrams to every target, and compares the loss with the requested share."""
        deliveries = await self._measure(DATAGRAMS)
        return judge(self.fault.probability, deliveries, self.problems)

    async def _measure(self, count: int) -> dict[str, Delivery]:
        """Sends datagrams from every node that other faults do not separate from the target, and counts at the target."""
        cut, blurred = self.fault.also_cut(), self.fault.blurred()
        senders = {
            name: [other for other in self.fault.ends(name) if other in talks(cut, name) and other not in blurred]
            for name in self.targets
            if name not in blurred
        }
        senders = {name: sources for name, sources in senders.items() if sources}

        def send_all(node: Node) -> None:
            targets = [self.field.node(name) for name, sources in senders.items() if node.name in sources]
            send(self.field.shell(node), targets, count=count)

        if not senders:
            return {}
        before = (await self.act(sorted(senders), self._arrivals, "reading datagram counters")).done
        sources = sorted({source for own in senders.values() for source in own})
        sent = (await self.act(sources, send_all, "sending datagrams")).done
        after = (await self.act(sorted(before), self._arrivals, "reading datagram counters")).done
        return {
            name: Delivery(
                sent=count * sum(source in sent for source in senders[name]),
                arrived=after[name].since(before[name]).arrived,
            )
            for name in after
        }

    def _arrivals(self, node: Node) -> Arrivals:
        return read_arrivals(self.field.shell(node))

    async def end(self) -> Proof | None:
        """Removes the rules, and verifies that datagrams arrive again.

        Raises:
            FaultError: The rules cannot be removed, or datagrams are still lost.
        """
        last = await self.remove(self.targets)
        lossy: dict[str, Delivery] = {}

        async def whole() -> bool:
            deliveries = await self._measure(HEALED_DATAGRAMS)
            lossy.clear()
            lossy.update({name: delivery for name, delivery in deliveries.items() if delivery.lost > LEAST_TOLERANCE})
            return not lossy

        if not await self.field.until(whole, slowed(HEALED_TIMEOUT_S)):
            texts = "; ".join(f"{name} still loses {delivery.lost:.0%}" for name, delivery in lossy.items())
            raise FaultError(f"fault {self.name}: its rules are removed, but {texts}")
        return self._final_proof(last)

    def _final_proof(self, last: Mapping[str, list[packet_rules.Counter]]) -> Proof | None:
        seen = sum(counter.packets for counters in last.values() for counter in counters if not counter.drop)
        dropped = sum(counter.packets for counters in last.values() for counter in counters if counter.drop)
        counted = f"In all the rules dropped {dropped} of {seen} packets."
        measured = {"dropped_total": dropped, "seen_total": seen}
        if self.fault.proof is None or not self.fault.proof.measured["delivery"]:  # then only the counters are known
            rules_only = Delivery(sent=seen, arrived=seen - dropped)
            reason = f"{counted} From outside the loss could not be measured."
            return Proof(
                effective=dropped > 0 and rules_only.is_near(self.fault.probability), reason=reason, measured=measured
            )
        return Proof(
            effective=self.fault.proof.effective,
            reason=f"{self.fault.proof.reason} {counted}",
            measured={**self.fault.proof.measured, **measured},
        )


def judge(probability: float, deliveries: Mapping[str, Delivery], problems: Mapping[str, str]) -> Proof:
    """Returns the proof from the measured losses; see `Delivery.is_near`."""
    texts = []
    effective = bool(deliveries)
    for name, delivery in sorted(deliveries.items()):
        good = delivery.is_near(probability)
        effective = effective and good
        expected = "" if good else f", expected {probability:.0%}"
        texts.append(f"{name} lost {delivery.lost:.1%} of {delivery.sent} datagrams{expected}")
    if not deliveries:
        texts.append("no datagrams could be sent to any target")
    texts += [f"{node}: {text}" for node, text in problems.items()]
    measured = {
        name: {"sent": delivery.sent, "arrived": delivery.arrived, "lost": round(delivery.lost, 4)}
        for name, delivery in sorted(deliveries.items())
    }
    return Proof(effective=effective, reason=f"{'; '.join(texts)}.", measured={"delivery": measured})
