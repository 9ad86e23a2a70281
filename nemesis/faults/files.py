"""Faults of files: a restart finds a truncated file, or a file with flipped bits.

The fault kills the process first, because a running program has the data in memory. At the end, it starts the process on the
damaged files. The damage is permanent, so a run damages at most a minority of the nodes; the plan and the nemesis both enforce
this. Numbers in the plan select the file and the bytes among the files on the node.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.faults import Begun, Proof
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import FaultError
from nemesis.fault import DISK, PROCESS, Drawing
from nemesis.faults.process import Kill
from nemesis.simulated import process
from nemesis.undo import SHELL_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Drawn
    from nemesis.field import Field
    from nemesis.simulated.effect import Effect

SEEDS = 2**31 - 1
MOST = 0.999999

# Damages one file. Arguments: directory, name pattern, selection among the matching files (0 to 1), method, amount, seed. It
# considers only files with a byte other than zero, and damages only the part up to the last such byte: the rest of a
# preallocated log was never written. It reads the damage back from the file, and prints it.
_PERL = r"""
use strict; use warnings; use File::Find; use Fcntl qw(:seek);
my ($dir, $pattern, $pick, $how, $amount, $seed) = @ARGV;
sub written {
  my ($path) = @_; my $size = -s $path; my $block = 1 << 20;
  open(my $in, '<:raw', $path) or die "$path: $!";
  for (my $end = $size; $end > 0; $end -= $block) {
    my $start = $end > $block ? $end - $block : 0;
    seek($in, $start, SEEK_SET); read($in, my $text, $end - $start);
    return $start + length($1) if $text =~ /^(.*[^\0])\0*$/s;
  }
  return 0;
}
my $glob = join '', map { $_ eq '*' ? '.*' : $_ eq '?' ? '.' : quotemeta } split //, $pattern;
my @files; find({ no_chdir => 1, wanted => sub {
  my $name = substr($_, length($dir) + 1) if length($_) > length($dir);
  push @files, $_ if defined $name && -f && !-l && $name !~ /\.labrys-/ && $name =~ /^(?:.*\/)?$glob$/ && written($_) > 0;
} }, $dir);
@files = sort @files;
die "no file with data matches $pattern in $dir\n" unless @files;
my $path = $files[int($pick * @files)]; my $size = -s $path; my $end = written($path);
if ($how eq 'truncate') {
  my $to = $end > $amount ? $end - $amount : 0;
  truncate($path, $to) or die "$path: $!";
  print "file $path\nbefore $size\nafter ", -s $path, "\nwritten $end\n";
} else {
  srand($seed); my %flips;
  while (keys %flips < $amount && keys %flips < $end) { $flips{int(rand($end))} = 1 << int(rand(8)); }
  open(my $io, '+<:raw', $path) or die "$path: $!"; my $wrong = 0; my %want;
  for my $at (sort { $a <=> $b } keys %flips) {
    seek($io, $at, SEEK_SET); read($io, my $byte, 1); $want{$at} = chr(ord($byte) ^ $flips{$at});
    seek($io, $at, SEEK_SET); print $io $want{$at};
  }
  close($io) or die "$path: $!";
  open(my $in, '<:raw', $path) or die "$path: $!";
  for my $at (keys %want) { seek($in, $at, SEEK_SET); read($in, my $byte, 1); $wrong++ if $byte eq $want{$at}; }
  print "file $path\nbefore $size\nafter ", -s $path, "\nwritten $end\nflipped $wrong\n";
  print "at ", join(',', sort { $a <=> $b } keys %flips), "\n";
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The damage to a file, read back from it.

    Attributes:
        file: The path.
        before_bytes: The size before.
        after_bytes: The size after.
        written_bytes: The size before, up to the last byte that is not zero.
        flipped: The number of bytes that have the intended flip.
        places: The offsets of the intended flips.
    """

    file: str
    before_bytes: int
    after_bytes: int
    written_bytes: int
    flipped: int
    places: tuple[int, ...]


class FileFault(Kill):
    """The base class of faults of files."""

    PROOF: ClassVar[str] = "as for kill; the damaged file, read back"
    GROUPS: ClassVar[frozenset[str]] = frozenset({PROCESS, DISK})
    DAMAGES: ClassVar[bool] = True
    LEAST_NODES: ClassVar[int] = 3  # fewer have no minority
    SIMULATED: ClassVar[type[Effect] | None] = process.Damaged
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.ONE, tgt.RANDOM, tgt.MINORITY)
    HOW: ClassVar[str]
    AMOUNT: ClassVar[str]

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.damages: dict[str, Damage] = {}

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the nodes, and the numbers that select the file and, if the kind needs it, the bytes."""
        drawn = super().draw(drawing)
        usual: dict[str, Value] = {"pick": round(drawing.rng.random() * MOST, 6)}
        if "seed" in cls.OPTIONS:
            usual["seed"] = drawing.rng.randint(0, SEEDS)
        return drawn.with_usual(usual)

    def _damage(self, node: Node) -> None:
        running = {pid for seen in self.sights(node).values() for pid in seen.pids}
        if running.intersection(self.pids_noted(node)):
            raise FaultError(f"{node.name}: its process still runs, so its files are left alone")
        for label, role in self.labels(node).items():
            self.damages[label] = self._damage_one(node, role)

    def _damage_one(self, node: Node, role: str) -> Damage:
        options = self.options
        arguments = [
            self.field.system.data_dir(node, role),
            options["file"],
            f"{options.get('pick', 0.0):f}",
            self.HOW,
            str(options[self.AMOUNT]),
            str(options.get("seed", 0)),
        ]
        command = f"perl -e {shlex.quote(_PERL)} -- {' '.join(map(shlex.quote, arguments))}"
        return parse_damage(self.field.shell(node).run(command, timeout_s=SHELL_TIMEOUT_S).stdout)

    async def begin(self) -> Begun:
        """Kills the process and damages one of its files on every target."""
        begun = await super().begin()
        await self.act(self.noted(), self._damage, "damaging a file")
        files: dict[str, Value] = {
            node: {"file": damage.file, "at": list(damage.places), "size": damage.after_bytes}
            for node, damage in sorted(self.damages.items())
        }
        return Begun(targets=begun.targets, details={**begun.details, "damage": files})

    def damaged(self, damage: Damage) -> tuple[bool, str]:
        """Returns whether the file has the damage, and the damage as a text."""
        raise NotImplementedError

    async def prove(self) -> Proof:
        """Proves the kill and the damage that was read back from the files."""
        killed = await super().prove()
        seen = {node: self.damaged(damage) for node, damage in sorted(self.damages.items())}
        texts = [f"on {node} {text}" for node, (_, text) in seen.items()]
        return Proof(
            effective=killed.effective and bool(seen) and all(good for good, _ in seen.values()),
            reason=f"{killed.reason[:-1]}; {'; '.join(texts) or 'no file was damaged'}.",
            measured={**killed.measured, "damage": {node: text for node, (_, text) in seen.items()}},
        )


class Truncate(FileFault):
    """`file-truncate`."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed and lost the end of a file"
    SUMMARY: ClassVar[str] = "Kills the process and cuts off the end of one of its data files."
    HOW: ClassVar[str] = "truncate"
    AMOUNT: ClassVar[str] = "drop_bytes"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "drop_bytes": opt.integer(1024, 1, 2**40, "The number of written bytes to cut off; zeros after them go too."),
        "file": opt.text("*", "A glob pattern of file names or paths in the data directory."),
        "pick": opt.number(None, 0, MOST, "Selects one of the matching files, from 0 to 1; drawn if not given."),
    }

    def damaged(self, damage: Damage) -> tuple[bool, str]:
        """Requires that the file is shorter than its written part was."""
        text = f"{damage.file} was cut from {damage.before_bytes} to {damage.after_bytes} bytes"
        return damage.after_bytes < damage.written_bytes, f"{text} ({damage.written_bytes} were written)"


class BitFlip(FileFault):
    """`file-bitflip`."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed and had a damaged file"
    SUMMARY: ClassVar[str] = "Kills the process and flips some bits in one of its data files."
    HOW: ClassVar[str] = "flip"
    AMOUNT: ClassVar[str] = "flips"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "flips": opt.integer(8, 1, 100_000, "The number of bytes in which one bit flips."),
        "file": opt.text("*", "A glob pattern of file names or paths in the data directory."),
        "pick": opt.number(None, 0, MOST, "Selects one of the matching files, from 0 to 1; drawn if not given."),
        "seed": opt.integer(None, 0, SEEDS, "Selects the bytes and bits; drawn if not given."),
    }

    def damaged(self, damage: Damage) -> tuple[bool, str]:
        """Requires that all flips were read back."""
        text = f"{damage.flipped} of {len(damage.places)} flipped bits were read back from {damage.file}"
        return 0 < damage.flipped == len(damage.places), text


def parse_damage(text: str) -> Damage:
    """Parses the output of the damaging script."""
    values = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    return Damage(
        file=values["file"],
        before_bytes=int(values["before"]),
        after_bytes=int(values["after"]),
        written_bytes=int(values["written"]),
        flipped=int(values.get("flipped", "0")),
        places=tuple(int(place) for place in values.get("at", "").split(",") if place),
    )
