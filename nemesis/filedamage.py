"""Damage to files on real nodes: scripts that a node runs while its process is stopped, and what they read back.

A script considers only files with a byte other than zero, and damages only the part up to the last such byte: the rest of a
preallocated log was never written. It reads the damage back from the file, and prints it. For a roll-back, `keeping` copies the
files before; see `harness.damage`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from harness.damage import Changed

if TYPE_CHECKING:
    from harness.damage import Damaging

KEPT: Final = "/var/lib/labrys/earlier"  # has a folder for each fault that rolls files back
MOST_KEPT_KB: Final = 1 << 20

# Arguments: directory, name pattern, selection among the files that can have the damage (0 to 1), what to do, amount, seed,
# size of a chunk, number of this node and of all nodes (see `harness.damage.Damaging.share`), folder with kept files.
_PERL: Final = r"""
use strict; use warnings; use File::Find; use File::Path qw(make_path); use File::Basename; use Fcntl qw(:seek);
my ($dir, $pattern, $pick, $how, $amount, $seed, $chunk, $share, $count, $kept) = @ARGV;
sub bytes { my ($in, $at, $length) = @_; return '' if $length <= 0;
  seek($in, $at, SEEK_SET); read($in, my $text, $length) // die "$!"; return $text; }
sub opened { my ($path) = @_; open(my $in, '<:raw', $path) or die "$path: $!"; return $in; }
sub written {
  my ($path) = @_; my $block = 1 << 20; my $in = opened($path);
  for (my $end = -s $path; $end > 0; $end -= $block) {
    my $start = $end > $block ? $end - $block : 0;
    return $start + length($1) if bytes($in, $start, $end - $start) =~ /^(.*[^\0])\0*$/s;
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
sub shuffled { my @all = @_; for (my $i = @all; --$i > 0;) { my $j = int(rand($i + 1)); @all[$i, $j] = @all[$j, $i]; } @all }
sub own { my ($end) = @_; grep { $_ % $count == $share } 0 .. int(($end + $chunk - 1) / $chunk) - 1 }
sub copies {  # offset => [content, offset of the source]
  my ($path, $end) = @_; my $in = opened($path); my %edits; my @all = 0 .. int(($end + $chunk - 1) / $chunk) - 1;
  for my $to (shuffled(own($end))) {
    my $was = bytes($in, $to * $chunk, $to * $chunk + $chunk > $end ? $end - $to * $chunk : $chunk); my $tries = 256;
    for my $from (shuffled(@all)) {
      my $rest = $end - $from * $chunk; my $length = $rest < length($was) ? $rest : length($was);
      my $text = bytes($in, $from * $chunk, $length);
      if ($from != $to && $text ne substr($was, 0, $length)) { $edits{$to * $chunk} = [$text, $from * $chunk]; last; }
      last unless --$tries;
    }
    last if keys %edits >= $amount;
  }
  return %edits;
}
sub before { my ($path) = @_; return $kept . substr($path, length($dir)); }
sub earlier {  # offset => [content]
  my ($path, $end) = @_; my $old = before($path); return () unless -f $old;
  if (!$chunk) { return () if system('cmp', '-s', $old, $path) == 0; return (0 => [$old]); }
  my ($in, $from) = (opened($path), opened($old)); my %edits;
  for my $number (own($end)) {
    my $at = $number * $chunk; my $text = bytes($from, $at, $at + $chunk > $end ? $end - $at : $chunk);
    $edits{$at} = [$text] if $text ne bytes($in, $at, length($text));
  }
  my @some = shuffled(keys %edits); splice(@some, $amount) if @some > $amount;
  return map { $_ => $edits{$_} } @some;
}
srand($seed);
if ($how eq 'keep') {
  for my $path (@files) {
    my $to = before($path); make_path(dirname($to)); system('sync', $path) == 0 or die "$path: cannot be synced\n";
    system('cp', '--sparse=always', '--reflink=auto', '--', $path, $to) == 0 or die "$path: cannot be copied\n";
  }
  print scalar(@files), "\n"; exit 0;
}
my %edits_of;
if ($how eq 'copy' || $how eq 'roll-back') {
  for my $path (@files) { my %edits = $how eq 'copy' ? copies($path, written($path)) : earlier($path, written($path));
    $edits_of{$path} = \%edits if %edits; }
  my $lacks = $how eq 'copy' ? 'has two different chunks' : 'changed since the files were kept';
  $lacks .= " in the chunks of this node, those with number $share of each $count" if $count > 1;
  die "none of the ", scalar(@files), " files that match $pattern in $dir $lacks\n" unless %edits_of;
  @files = grep { $edits_of{$_} } @files;
}
my $path = $files[int($pick * @files)]; my $size = -s $path; my $end = written($path);
my %edits; my $differ = 0;
if ($how eq 'cut') {
  my $to = $end > $amount ? $end - $amount : 0;
  truncate($path, $to) or die "$path: $!"; $differ = $size - (-s $path);
} elsif ($how eq 'flip') {
  my $own = $end; my ($whole, $rest) = $chunk ? (int($end / $chunk), $end % $chunk) : (0, 0);
  $own = (grep { $_ % $count == $share } 0 .. $whole - 1) * $chunk + ($whole % $count == $share ? $rest : 0) if $count > 1;
  my %flips; while (keys %flips < $amount && keys %flips < $own) { $flips{int(rand($own))} = 1 << int(rand(8)); }
  my $in = opened($path);
  for my $number (keys %flips) {
    my $at = $count > 1 ? ($share + int($number / $chunk) * $count) * $chunk + $number % $chunk : $number;
    $edits{$at} = [chr(ord(bytes($in, $at, 1)) ^ $flips{$number})];
  }
} else { %edits = %{$edits_of{$path}}; }
if ($how eq 'roll-back' && !$chunk) {
  my $old = before($path); my ($first, $same) = (-1, 0);
  open(my $cmp, '-|', 'cmp', '-l', '--', $old, $path) or die "cmp: $!";
  while (<$cmp>) { $differ++; $first = (split)[0] - 1 if $first < 0; }
  close($cmp); my $changed = $size - (-s $old); $differ += abs($changed);
  $first = $changed > 0 ? -s $old : $size if $first < 0;
  system('cp', '--sparse=always', '--', $old, $path) == 0 or die "$path: cannot be written\n";
  my $good = system('cmp', '-s', '--', $old, $path) == 0 && $differ;
  print "meant 1\nplaces ", $good ? $first : '', "\n";
} elsif (%edits) {
  my %was; my $in = opened($path); $was{$_} = bytes($in, $_, length($edits{$_}[0])) for keys %edits; close($in);
  open(my $io, '+<:raw', $path) or die "$path: $!";
  for my $at (sort { $a <=> $b } keys %edits) { seek($io, $at, SEEK_SET); print $io $edits{$at}[0]; }
  close($io) or die "$path: $!";
  $in = opened($path); my @good;
  for my $at (sort { $a <=> $b } keys %edits) {
    my $now = bytes($in, $at, length($edits{$at}[0]));
    push @good, $at if $now eq $edits{$at}[0] && $now ne $was{$at};
    my $mixed = $now ^ $was{$at}; $differ += $mixed =~ tr/\0//c;
  }
  print "meant ", scalar(keys %edits), "\nplaces ", join(',', @good), "\n";
  print "sources ", join(',', map { $edits{$_}[1] } @good), "\n" if $how eq 'copy';
}
print "file $path\nbefore $size\nafter ", -s $path, "\nwritten $end\ndiffer $differ\n";
"""


def damaging(asked: Damaging, directory: str, kept: str = "") -> str:
    """Returns a command that damages a file in a directory, and prints what `parse_changed` reads.

    Args:
        asked: The damage.
        directory: The directory with the files of a stopped process.
        kept: The folder to which `keeping` copied them; empty unless the damage rolls one back.
    """
    number, count = asked.share
    return _script(
        directory,
        asked.pattern,
        f"{asked.pick:f}",
        str(asked.how),
        str(asked.amount),
        str(asked.seed),
        str(asked.chunk_bytes),
        str(number),
        str(count),
        kept,
    )


def keeping(directory: str, pattern: str, kept: str) -> str:
    """Returns a command that syncs the files in a directory, and copies them to a folder."""
    path, folder = shlex.quote(directory), shlex.quote(kept)
    small = f"[ $(du -sk {path} | cut -f1) -le {MOST_KEPT_KB} ]"
    room = f"{small} || {{ echo {path} has more than {MOST_KEPT_KB} KB >&2; exit 1; }}"
    copy = _script(directory, pattern, "0", "keep", "0", "0", "0", "0", "1", kept)
    return f"set -e\n{room}\nrm -rf {folder}\nmkdir -p -m 700 {folder}\n{copy}"


def _script(*arguments: str) -> str:
    return f"perl -e {shlex.quote(_PERL)} -- {shlex.join(arguments)}"


def parse_changed(text: str, length_bytes: int) -> Changed:
    """Parses the output of a command of `damaging`.

    Args:
        text: The output.
        length_bytes: The size of each place; see `Changed`.
    """
    values = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    return Changed(
        file=values["file"],
        before_bytes=int(values["before"]),
        after_bytes=int(values["after"]),
        written_bytes=int(values["written"]),
        meant=int(values.get("meant", "0")),
        places=_numbers(values.get("places", "")),
        length_bytes=length_bytes,
        sources=_numbers(values.get("sources", "")),
        differ=int(values["differ"]),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)
