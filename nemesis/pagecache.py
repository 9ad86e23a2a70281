"""How much of a process' data is in the page cache of its node: what a restart would not read from disk.

The size of the whole page cache says nothing about the files of one process, and files in memory (tmpfs) always stay there. So
Labrys asks the kernel for each page of these files (mincore(2)). The kernel of a node may not have cachestat(2), which came
with Linux 6.5.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nemesis.undo import SHELL_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.remote import Remote

PAGE_KB = 4
# The numbers of mmap, munmap and mincore: those of x86-64, and those of all newer architectures.
_PERL = r"""
my ($mmap, $munmap, $mincore) = `uname -m` =~ /x86_64/ ? (9, 11, 27) : (222, 215, 232);
sub pages {
  my ($dir) = @_;
  my ($resident, $files) = (0, 0);
  opendir(my $all, $dir) or return (0, 0);
  for my $name (readdir $all) {
    next if $name eq '.' || $name eq '..' || $name =~ /^\.labrys-/;
    my $path = "$dir/$name";
    next if -l $path;
    if (-d $path) { my @in = pages($path); $resident += $in[0]; $files += $in[1]; next; }
    my $size = -s $path or next;
    open(my $file, '<', $path) or next;
    my $at = syscall($mmap, 0, $size, 1, 1, fileno($file), 0);
    next if $at == -1;
    my $states = "\0" x (($size + 4095) >> 12);
    die "mincore: $!" if syscall($mincore, $at, $size, $states) != 0;
    syscall($munmap, $at, $size);
    $files++;
    $resident += grep { $_ & 1 } unpack('C*', $states);
  }
  return ($resident, $files);
}
sub look { print join(' ', pages($_)), "\n" for @ARGV; }
look();
system('sync', '-f', $_) for @ARGV;
open(my $drop, '>', '/proc/sys/vm/drop_caches') or die "drop_caches: $!";
print $drop "3\n";
close($drop) or die "drop_caches: $!";
look();
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """The page cache of the files in a directory, before and after a drop.

    Attributes:
        files: The number of files that were not empty.
        before_kb: How much of them was in memory.
        after_kb: How much of them still is.
    """

    files: int
    before_kb: int
    after_kb: int

    @property
    def is_cold(self) -> bool:
        """Returns whether a restart must read most of what was in memory from disk."""
        return self.after_kb * 2 <= self.before_kb and self.before_kb > 0


def drop(remote: Remote, directories: Sequence[str]) -> list[Cached]:
    """Writes the data of some directories to disk, and drops the clean page cache of the node.

    Returns:
        What was in memory before, and what is there afterwards, for each directory.

    Raises:
        NodeError: The node cannot be reached, or its kernel refuses.
    """
    command = f"perl -e {shlex.quote(_PERL)} -- {shlex.join(directories)}"
    return parse(remote.run(command, timeout_s=SHELL_TIMEOUT_S).stdout, len(directories))


def parse(output: str, count: int) -> list[Cached]:
    """Parses the pages in memory and the files of `count` directories, before and after."""
    numbers = [[int(word) for word in line.split()] for line in output.splitlines()]
    return [
        Cached(files=before[1], before_kb=before[0] * PAGE_KB, after_kb=after[0] * PAGE_KB)
        for before, after in zip(numbers[:count], numbers[count:], strict=True)
    ]
