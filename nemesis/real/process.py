"""Kills and pauses processes on real nodes.

The system kills and pauses its own process, but the proof uses only the kernel, for the pid and the ports of each process.
After a kill, the pid is gone and no process listens on the ports. During a pause, the process that listens on the ports is in
state T. So if a pid file names the wrong process, the run reports the fault as without effect.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import LabrysError
from harness.faults import Begun, Proof
from harness.slowness import slowed
from nemesis import pagecache
from nemesis.actor import OnNodes
from nemesis.errors import FaultError
from nemesis.evidence import STOPPED, Listeners, find_listeners
from nemesis.fault import brief
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Fault
    from nemesis.faults.process import Crash, Kill, Pause, ProcessFault

GONE_TIMEOUT_S = 5.0
BACK_TIMEOUT_S = 45.0
BACK_POLL_S = 0.4  # each look slows the starting process down
RESUMED_TIMEOUT_S = 5.0
LOGS = 2
LOG_LINES = 12
LOG_WIDTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenProcess:
    """A process of the system on a node, by the system's report and by the kernel.

    Attributes:
        pid: The pid that the system reports; None if it finds no process.
        state: The state letter of that process.
        kernel: The processes that listen on the system's ports.
    """

    pid: int | None
    state: str | None
    kernel: Listeners

    @property
    def pids(self) -> frozenset[int]:
        """Returns all these pids."""
        return frozenset(self.kernel.states) | ({self.pid} if self.pid is not None else frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """The processor time of some processes at a moment.

    Attributes:
        uptime_s: The node's uptime at the reading.
        ticks: The processor time in the kernel's ticks, mostly hundredths of a second.
    """

    uptime_s: float
    ticks: int


class ProcessOnNodes(OnNodes):
    """The base class of actors that look at processes."""

    fault: ProcessFault

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.before: dict[str, SeenProcess] = {}

    def sights(self, node: Node) -> dict[str, SeenProcess]:
        """Looks up the processes in the system's report and in the kernel; by label.

        Raises:
            FaultError: The node runs no process of the system.
        """
        labels = self.fault.labels(node)
        if not labels:
            raise FaultError(f"{node.name} runs no process of the system")
        states = self.field.system.process_states(node, self.role)
        processes = {}
        for label, role in labels.items():
            pid, state = states.get(role) or (None, None)
            kernel = find_listeners(self.field.shell(node), self.field.system.ports(role))
            processes[label] = SeenProcess(pid=pid, state=state, kernel=kernel)
        return processes

    async def seen(self, names: Sequence[str], what: str) -> dict[str, SeenProcess]:
        """Looks up the processes of several nodes, and records failures as problems; by label."""
        by_node = (await self.act(names, self.sights, what)).done
        return {label: process for processes in by_node.values() for label, process in processes.items()}

    def note_before(self, node: Node) -> dict[str, SeenProcess]:
        """Looks up the processes before the injection, and stores the result."""
        seen = self.sights(node)
        self.before.update(seen)
        return seen

    def noted(self) -> list[str]:
        """Returns the targets with a stored look-up from before the injection."""
        return [name for name in self.targets if self.fault.labels(self.field.node(name)).keys() & self.before.keys()]

    def pids_noted(self, node: Node) -> list[int]:
        """Returns the pids on a node before the fault."""
        return sorted(
            {pid for label in self.fault.labels(node) if label in self.before for pid in self.before[label].pids}
        )

    def pids_before(self) -> dict[str, Value]:
        """Returns the pids before the fault, by label."""
        return {label: seen.pid for label, seen in sorted(self.before.items())}


class KillOnNodes(ProcessOnNodes):
    """`kill`, and its variants by target."""

    fault: Kill

    async def begin(self) -> Begun:
        """Kills the process on every target and waits until it is gone."""
        await self.act(self.targets, self._kill, "kill")
        await self.field.until(self._all_gone, slowed(GONE_TIMEOUT_S))
        return Begun(targets=self.targets, details={"pids": self.pids_before(), "problems": dict(self.problems)})

    def _kill(self, node: Node) -> None:
        self.note_before(node)
        self.field.system.kill(node, self.role)

    async def _all_gone(self) -> bool:
        seen = await self.seen(self.noted(), "looking for the process")
        return all(self._gone(label, process) is None for label, process in seen.items())

    def _gone(self, label: str, now: SeenProcess) -> str | None:
        """Returns a contradiction to the kill of the earlier process; None if there is none."""
        before = self.before[label]
        survivors = sorted(before.kernel.states.keys() & now.kernel.states.keys())
        if before.pid is not None and now.pid == before.pid:
            return f"still runs as pid {before.pid}"
        if survivors:
            return f"still listens on its ports as pid {survivors[0]}, though pid {before.pid} of the system is gone"
        if now.pid is not None:
            return f"runs again, as pid {now.pid}, and Labrys has not started it"
        if now.kernel.ports:
            return f"listens on port {min(now.kernel.ports)} again, as pid {min(now.kernel.states, default=0)}"
        return None

    async def prove(self) -> Proof:
        """Looks for the process in the kernel of every target."""
        seen = await self.seen(self.targets, "looking for the process")
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        idle: dict[str, str] = {}
        for label, now in seen.items():
            before = self.before.get(label)
            contradiction = self._gone(label, now) if before else "was not reached by the kill"
            if contradiction:
                bad[label] = contradiction
            elif before and before.pid is None and not before.kernel.states:
                idle[label] = "did not run before"
            elif before:
                good[label] = f"pid {before.pid or min(before.kernel.states)} vanished"
        self.problems.update({label: text for label, text in idle.items() if label not in self.problems})
        return self.fault.shown(bad, good, {"pids": self.pids_before(), "vanished": sorted(good)})

    async def end(self) -> Proof | None:
        """Starts the process again on every target, and verifies that a new pid listens on the same ports.

        Raises:
            FaultError: A node did not come back, which is a finding about the system.
        """
        started = await self.field.each(self.targets, lambda node: self.field.system.start(node, self.role))
        failed = {node: brief(error) for node, error in started.failed.items()}
        # What each node lacks, by label.
        waiting = {
            name: dict.fromkeys(self.fault.labels(self.field.node(name)), "was not looked at") for name in started.done
        }

        async def back() -> bool:
            seen = await self.field.each(sorted(waiting), self.sights)
            for name, error in seen.failed.items():
                waiting[name] = dict.fromkeys(waiting[name], brief(error))
            for name, processes in seen.done.items():
                lacking = {label: self._missing(label, now) for label, now in processes.items()}
                waiting[name] = {label: text for label, text in lacking.items() if text is not None}
                if not waiting[name]:
                    del waiting[name]
            return not waiting

        if waiting:
            await self.field.until(back, slowed(BACK_TIMEOUT_S), every_s=BACK_POLL_S)
        if waiting or failed:
            missing = {**failed, **{label: text for lacking in waiting.values() for label, text in lacking.items()}}
            texts = "; ".join(f"{label} {text}" for label, text in missing.items())
            logs = await self._last_lines(sorted({*failed, *waiting}))
            raise FaultError(f"fault {self.name}: after the restart, {slowed(BACK_TIMEOUT_S):g} s long, {texts}{logs}")
        return None

    async def _last_lines(self, names: Sequence[str]) -> str:
        """Returns the last lines of the newest logs of nodes, each after a line that names the node."""

        def read(node: Node) -> str:
            files = shlex.join(self.field.system.log_files(node, self.role))
            script = f"ls -t {files} 2>/dev/null | head -n {LOGS} | xargs -r tail -n {LOG_LINES} | cut -c -{LOG_WIDTH}"
            return self.field.shell(node).run(script, timeout_s=SHELL_TIMEOUT_S).stdout.strip()

        outcomes = await self.field.each(names, read)
        texts = {
            **outcomes.done,
            **{node: f"(cannot be read: {brief(error)})" for node, error in outcomes.failed.items()},
        }
        return "".join(f"\n--- last lines of the logs of {node}\n{texts[node] or '(nothing)'}" for node in names)

    def _missing(self, label: str, now: SeenProcess) -> str | None:
        before = self.before.get(label)
        if now.pid is None:
            return "has no process"
        survivors = sorted(before.pids & now.pids) if before else []
        if survivors:
            return f"still runs as pid {survivors[0]}, as before the kill"
        listened = before.kernel.ports if before else frozenset()
        silent = sorted(listened - now.kernel.ports - set(self.field.system.leader_ports()))
        return f"(pid {now.pid}) does not listen on port {silent[0]}" if silent else None


class CrashOnNodes(KillOnNodes):
    """`crash`."""

    fault: Crash

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._cached: dict[str, pagecache.Cached] = {}

    def _kill(self, node: Node) -> None:
        super()._kill(node)
        labels = self.fault.labels(node)
        directories = [self.field.system.data_dir(node, role) for role in labels.values()]
        self._cached.update(zip(labels, pagecache.drop(self.field.shell(node), directories), strict=True))

    async def prove(self) -> Proof:
        """Proves the kill, and that most of the data left the memory."""
        killed = await super().prove()
        by_label = sorted(self._cached.items())
        texts = [
            f"{cached.before_kb} kB of {label}'s data were in memory, then {cached.after_kb} kB"
            for label, cached in by_label
        ]
        return Proof(
            effective=killed.effective and bool(by_label) and all(cached.is_cold for _, cached in by_label),
            reason=f"{killed.reason[:-1]}; {'; '.join(texts) or 'nothing was dropped from memory'}.",
            measured={
                **killed.measured,
                "page_cache": {
                    label: {"files": cached.files, "before_kb": cached.before_kb, "after_kb": cached.after_kb}
                    for label, cached in by_label
                },
            },
        )


class PauseOnNodes(ProcessOnNodes):
    """`pause`, and its variants by target."""

    fault: Pause

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._cpu_before: dict[str, CpuReading] = {}

    async def begin(self) -> Begun:
        """Stops the process on every target."""
        await self.act(self.targets, self._pause, "pause")
        return Begun(targets=self.targets, details={"pids": self.pids_before(), "problems": dict(self.problems)})

    def _pause(self, node: Node) -> None:
        self.note_before(node)
        resume = "\n".join(f"kill -CONT {pid} 2>/dev/null" for pid in self.pids_noted(node)) + "\nexit 0"
        self.field.shell(node).run(making(self.name, effect="", undo=resume), timeout_s=SHELL_TIMEOUT_S)
        self.field.system.pause(node, self.role)

    async def prove(self) -> Proof:
        """Reads the states of the processes from the kernel of every target, and their processor time."""
        proof, stopped = await self._look()
        whole = [name for name in self.noted() if self.fault.labels(self.field.node(name)).keys() <= stopped]
        self._cpu_before = (await self.field.each(sorted(whole), self._read_cpu)).done
        return proof

    async def again(self) -> Proof | None:
        """Reads the states again; `end` compares the processor time."""
        proof, _ = await self._look()
        return proof

    async def _look(self) -> tuple[Proof, frozenset[str]]:
        """Returns the proof by the states now, and the labels of the stopped processes."""
        seen = await self.seen(self.targets, "looking at the process")
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        states: dict[str, Value] = {}
        for label, now in seen.items():
            running = {pid: state for pid, state in now.kernel.states.items() if state != STOPPED}
            states[label] = {
                "pid": now.pid,
                "state": now.state,
                "listening": {str(k): v for k, v in now.kernel.states.items()},
            }
            if now.pid is None and not now.kernel.states:
                self.problems.setdefault(label, "there was no process to stop")
            elif running:
                pid, state = next(iter(running.items()))
                bad[label] = f"listens on its ports as pid {pid} in state {state}, which is not stopped"
            elif now.state is not None and now.state != STOPPED:
                bad[label] = f"runs as pid {now.pid} in state {now.state}, which is not stopped"
            else:
                good[label] = f"pid {now.pid or min(now.kernel.states)} is in state T"
        return self.fault.shown(bad, good, {"states": states}), frozenset(good)

    def _read_cpu(self, node: Node) -> CpuReading:
        """Reads the processor time of the stopped processes, and the node's uptime."""
        pids = " ".join(f"/proc/{pid}/stat" for pid in self.pids_noted(node))
        used = "sed 's/.*) //' | awk '{ s += $12 + $13 } END { print s + 0 }'"
        script = f"cut -d' ' -f1 /proc/uptime; cat {pids} 2>/dev/null | {used}"
        uptime_s, ticks = self.field.shell(node).run(script, timeout_s=SHELL_TIMEOUT_S).stdout.split()
        return CpuReading(uptime_s=float(uptime_s), ticks=int(ticks))

    async def _stood_still(self) -> Proof | None:
        """Returns the proof that the processes used no processor time since `prove`; None without an effective proof."""
        if self.fault.proof is None or not self.fault.proof.effective:
            return None
        now = (await self.field.each(sorted(self._cpu_before), self._read_cpu)).done
        used = {
            node: {
                "seconds": round(late.uptime_s - self._cpu_before[node].uptime_s, 2),
                "ticks": late.ticks - self._cpu_before[node].ticks,
            }
            for node, late in now.items()
        }
        running = [
            f"{node}'s process used {cpu['ticks']} ticks of processor time"
            for node, cpu in used.items()
            if cpu["ticks"]
        ]
        shortest_s = min((cpu["seconds"] for cpu in used.values()), default=0.0)
        text = "; ".join(running) or f"no processor time was used in the next {shortest_s:g} s"
        return Proof(
            effective=not running,
            reason=f"{self.fault.proof.reason[:-1]}; {text}." if used else self.fault.proof.reason,
            measured={**self.fault.proof.measured, "stood_still": used},
        )

    async def end(self) -> Proof | None:
        """Continues the process on every target, and verifies that it is not stopped any more.

        Raises:
            FaultError: A process is still stopped, or its node cannot be reached.
        """
        proof = await self._stood_still()
        waiting = dict.fromkeys(self.targets, "was not looked at")

        async def resumed() -> bool:
            outcomes = await self.field.each(sorted(waiting), self._resume)
            waiting.update({node: brief(error) for node, error in outcomes.failed.items()})
            for node, processes in outcomes.done.items():
                stopped = [
                    pid for now in processes.values() for pid, state in now.kernel.states.items() if state == STOPPED
                ]
                stopped += [now.pid for now in processes.values() if now.pid is not None and now.state == STOPPED]
                if stopped:
                    waiting[node] = f"is still stopped as pid {stopped[0]}"
                else:
                    del waiting[node]
            return not waiting

        if not await self.field.until(resumed, slowed(RESUMED_TIMEOUT_S)):
            texts = "; ".join(f"{node} {text}" for node, text in waiting.items())
            raise FaultError(f"fault {self.name} is not healed: {texts}")
        return proof

    def _resume(self, node: Node) -> dict[str, SeenProcess]:
        problem: LabrysError | None = None
        try:
            self.field.system.resume(node, self.role)
        except LabrysError as error:  # the undo note still continues the earlier pids; the check comes after it
            problem = error
        self.field.shell(node).run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)
        processes = self.sights(node)
        if problem is not None and any(now.pid is not None for now in processes.values()):
            raise problem
        return processes
