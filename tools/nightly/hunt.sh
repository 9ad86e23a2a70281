#!/bin/sh
# Hunts for an invalid run by seed.
#
# usage: hunt.sh FILE SEED OUT      in the folder of the repository, as root if the system's programs need it
#
# FILE has the options of the hunt in its table [hunt], such as clusters/systems/NAME/tests/hunt.toml. SEED is a whole number, and OUT
# a new folder. OUT gets
#
#   store/        the first invalid run with its report, if there is one
#   summary.md    how many runs there were, and how they ended
#   exit-code     that of `labrys hunt`: 1 for an invalid run, 255 for one that broke off, 2 if no run is valid, else 0
#
# The script ends with that code. MINUTES is the duration; without it, it is 60. LABRYS names the command, as in night.sh.
set -u

[ $# -eq 3 ] || { echo "usage: hunt.sh FILE SEED OUT" >&2; exit 254; }
file=$1 seed=$2 out=$3
labrys=${LABRYS:-$([ -x .venv/bin/labrys ] && echo .venv/bin/labrys || echo labrys)}
mkdir -p "$(dirname "$out")" && mkdir "$out" || { echo "hunt.sh: $out must be a new folder" >&2; exit 254; }

{
    "$labrys" --config "$file" hunt --seed "$seed" --minutes "${MINUTES:-60}" --runs 10000000 --store "$out/store"
    echo $? >"$out/exit-code"
} 2>&1 | tee "$out/hunt.txt"
{
    echo "Hunt of \`$file\` with seed $seed:"
    echo
    grep -v '^·' "$out/hunt.txt" | sed 's/^/    /'
} >"$out/summary.md"
exit "$(cat "$out/exit-code")"
