"""Faults of files: a restart finds a file that is cut off, has flipped bits, or has a part of another place or time.

The fault kills the process first, because a running program has the data in memory. At the end, it starts the process on the
damaged files. The damage is permanent, so a run damages at most a minority of the nodes; the plan and the nemesis both enforce
this. Two targets are different. `helix` damages another part of the files on each node, so that each part stays whole on all
nodes but one. `all` leaves no good copy: it is a negative control, which shows that the damage matters. Numbers in the plan
select the file and the bytes among the files on the node. The model is Jepsen's `jepsen.nemesis.file`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from harness.damage import Changed, Damaging, How
from harness.faults import Proof
from harness.targets import AllNodes, Helix
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import FaultError, PlanError
from nemesis.fault import DISK, PROCESS, Drawing, Drawn
from nemesis.faults.process import Kill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import PlannedFault
    from harness.op import Value
    from nemesis.field import Field

SEEDS: Final = 2**31 - 1
MOST: Final = 0.999999
SECTOR_BYTES: Final = 512  # the least that a disk writes
SHOWN: Final = 8  # offsets in a text
_FILE: Final = opt.text("*", "A glob pattern of file names or paths in the data directory.")
_PICK: Final = opt.number(None, 0, MOST, "Selects one of the files that can have it, from 0 to 1; drawn if not given.")


class FileFault(Kill):
    """The base class of faults of files."""

    PROOF: ClassVar[str] = "as for kill; the damaged file with the offsets, read back"
    GROUPS: ClassVar[frozenset[str]] = frozenset({PROCESS, DISK})
    DAMAGES: ClassVar[bool] = True
    LEAST_NODES: ClassVar[int] = 3  # fewer have no minority
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.ONE, tgt.RANDOM, tgt.MINORITY)
    ON_REQUEST: ClassVar[tuple[tgt.Target, ...]] = (tgt.HELIX, tgt.ALL)
    HOW: ClassVar[How]
    AMOUNT: ClassVar[str]

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.damages: dict[str, Changed] = {}

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the nodes, and the numbers that select the file and, if the kind needs it, the bytes."""
        drawn = (
            Drawn(target=drawing.target, options=drawing.options)
            if isinstance(drawing.target, AllNodes | Helix)
            else super().draw(drawing)
        )
        usual: dict[str, Value] = {"pick": round(drawing.rng.random() * MOST, 6)}
        if "seed" in cls.OPTIONS:
            usual["seed"] = drawing.rng.randint(0, SEEDS)
        return drawn.with_usual(usual)

    def damaging(self, name: str) -> Damaging:
        """Returns the damage to one file of a node."""
        options = self.options
        members = self.members
        return Damaging(
            how=self.HOW,
            pattern=options["file"],
            pick=float(options.get("pick", 0.0)),
            amount=options[self.AMOUNT],
            seed=options.get("seed", 0),
            chunk_bytes=options.get("chunk_bytes", SECTOR_BYTES),
            share=(members.index(name), len(members)) if self.planned.target == tgt.HELIX else (0, 1),
        )

    def measured(self) -> dict[str, Value]:
        """Returns the file, the offsets and the sizes of each damage, by label."""
        return {
            label: {
                "file": changed.file,
                "at": list(changed.places),
                "length": changed.length_bytes,
                "from": list(changed.sources),
                "differ": changed.differ,
                "size_before": changed.before_bytes,
                "size": changed.after_bytes,
            }
            for label, changed in sorted(self.damages.items())
        }

    def damaged(self, changed: Changed) -> tuple[bool, str]:
        """Returns whether the file has the damage, and the damage as a text."""
        raise NotImplementedError

    def with_damage(self, killed: Proof) -> Proof:
        """Returns the proof of the damage with that of the kill."""
        seen = {node: self.damaged(changed) for node, changed in sorted(self.damages.items())}
        texts = [f"on {node} {text}" for node, (_, text) in seen.items()]
        return Proof(
            effective=killed.effective and bool(seen) and all(good for good, _ in seen.values()),
            reason=f"{killed.reason[:-1]}; {'; '.join(texts) or 'no file was damaged'}.",
            measured={**killed.measured, "damage": self.measured()},
        )


class Truncate(FileFault):
    """`file-truncate`."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed and lost the end of a file"
    SUMMARY: ClassVar[str] = "Kills the process and cuts off the end of one of its data files."
    HOW: ClassVar[How] = How.CUT
    AMOUNT: ClassVar[str] = "drop_bytes"
    ON_REQUEST: ClassVar[tuple[tgt.Target, ...]] = (tgt.ALL,)
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "drop_bytes": opt.integer(1024, 1, 2**40, "The number of written bytes to cut off; zeros after them go too."),
        "file": _FILE,
        "pick": _PICK,
    }

    def damaged(self, changed: Changed) -> tuple[bool, str]:
        """Requires that the file is shorter than its written part was."""
        text = f"{changed.file} was cut from {changed.before_bytes} to {changed.after_bytes} bytes"
        return changed.after_bytes < changed.written_bytes, f"{text} ({changed.written_bytes} were written)"


class ChunkFault(FileFault):
    """The base class of faults of places in a file."""

    def damaged(self, changed: Changed) -> tuple[bool, str]:
        """Requires that all places were read back with their new content."""
        good = 0 < len(changed.places) == changed.meant and changed.differ > 0
        return good, self.told(changed) + ("" if good else f" ({changed.meant} places were meant)")

    def told(self, changed: Changed) -> str:
        """Returns the damage as a text."""
        raise NotImplementedError


class BitFlip(ChunkFault):
    """`file-bitflip`."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed and had a damaged file"
    SUMMARY: ClassVar[str] = "Kills the process and flips some bits in one of its data files."
    HOW: ClassVar[How] = How.FLIP
    AMOUNT: ClassVar[str] = "flips"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "flips": opt.integer(8, 1, 100_000, "The number of bytes in which one bit flips."),
        "file": _FILE,
        "chunk_bytes": opt.integer(
            None,
            1,
            2**40,
            f"The size of the parts that helix shares out; {SECTOR_BYTES} if not given.",
        ),
        "pick": _PICK,
        "seed": opt.integer(None, 0, SEEDS, "Selects the bytes and bits; drawn if not given."),
    }

    def told(self, changed: Changed) -> str:
        """Returns the damage as a text."""
        return f"{len(changed.places)} bytes of {changed.file} differ by a bit, at {_offsets(changed.places)}"


class Copy(ChunkFault):
    """`file-copy`."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed and had a part of a file in a wrong place"
    SUMMARY: ClassVar[str] = "Kills the process and copies parts of one of its data files over other parts."
    SILENT: ClassVar[bool] = True
    HOW: ClassVar[How] = How.COPY
    AMOUNT: ClassVar[str] = "chunks"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "chunks": opt.integer(1, 1, 100_000, "How many parts get the content of another part."),
        "chunk_bytes": opt.integer(SECTOR_BYTES, 1, 2**30, "The size of a part, in bytes."),
        "file": _FILE,
        "pick": _PICK,
        "seed": opt.integer(None, 0, SEEDS, "Selects the parts; drawn if not given."),
    }

    def told(self, changed: Changed) -> str:
        """Returns the damage as a text."""
        copies = [
            f"at {copy} is what was at {source}" for copy, source in zip(changed.places, changed.sources, strict=True)
        ]
        more = f" and {len(copies) - SHOWN} more" if len(copies) > SHOWN else ""
        parts = ", ".join(copies[:SHOWN]) or "no part changed"
        return f"in {changed.file}, in parts of {changed.length_bytes} bytes, {parts}{more} ({changed.differ} bytes differ)"


class RollBack(ChunkFault):
    """`file-rollback`."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed and had an earlier content of a file"
    SUMMARY: ClassVar[str] = "Kills the process and gives one of its data files, or parts of it, an earlier content."
    SILENT: ClassVar[bool] = True
    HOW: ClassVar[How] = How.ROLL_BACK
    AMOUNT: ClassVar[str] = "chunks"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "back": opt.number(3.0, 0.1, 600.0, "The age of the content in seconds."),
        "chunk_bytes": opt.integer(0, 0, 2**30, "The size of a part in bytes; 0: the whole file."),
        "chunks": opt.integer(1, 1, 100_000, "How many parts."),
        "file": _FILE,
        "pick": _PICK,
        "seed": opt.integer(None, 0, SEEDS, "Selects the parts; drawn if not given."),
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the nodes, the file and the parts.

        Raises:
            PlanError: A whole file cannot be shared out among the nodes.
        """
        if drawing.target == tgt.HELIX and not drawing.options.get("chunk_bytes"):
            raise PlanError(
                f"the target {tgt.HELIX} damages other parts of a file on each node, and without file-rollback.chunk_bytes the "
                f"whole file is rolled back; give e.g. file-rollback.chunk_bytes={SECTOR_BYTES}"
            )
        return super().draw(drawing)

    def check_time(self) -> None:
        """Refuses to wait for longer than the fault lasts.

        Raises:
            FaultError: It would.
        """
        back_s, lasts_s = self.options["back"], self.planned.lasts_s
        if back_s >= lasts_s:
            raise FaultError(
                f"fault {self.name} lasts {lasts_s:g} s, and file-rollback.back waits for {back_s:g} s of it; give a longer "
                "fault, or less of it"
            )

    def told(self, changed: Changed) -> str:
        """Returns the damage as a text."""
        what = (
            f"{changed.file} has its content"
            if not changed.length_bytes
            else (f"{len(changed.places)} parts of {changed.length_bytes} bytes of {changed.file} have their content")
        )
        size = (
            ""
            if changed.before_bytes == changed.after_bytes
            else f" and {changed.after_bytes} bytes, not {changed.before_bytes}"
        )
        differ = f"{changed.differ} bytes differ, from {_offsets(changed.places)} on"
        return f"{what} of {self.options['back']:g} s before{size}; {differ}"


def _offsets(places: Sequence[int]) -> str:
    """Returns offsets as a text, the first few of many."""
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return (", ".join(map(str, places[:SHOWN])) or "no offset") + more
