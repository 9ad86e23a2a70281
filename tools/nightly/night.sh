#!/bin/sh
# Runs the regressions, and then one suite.
#
# The regressions are the folders `regressions` of the systems, and `before-NAME` for the suite suites/NAME.toml.
#
# usage: night.sh SUITE SEED OUT      in the folder of the repository, as root if the suite has local nodes
#
# SUITE is a file such as suites/smoke.toml, SEED a whole number, and OUT a new folder. OUT gets
#
#   store/       the runs with their reports, and the folders of the suites
#   exit-code    the worst of all: 1 for a wrong verdict, 255 for an error, 2 for an unknown verdict, else 0
#
# Only causes that the folder `known` lacks count. The script ends with that code. SHARD, such as 2/5, runs the second of five parts
# of the suite; the first part has the regressions. LABRYS names the command. Without it, it is .venv/bin/labrys if that exists, and else the
# `labrys` on the PATH. FORMAT is that of `labrys suite`: `github` annotates each case that failed.
set -u

[ $# -eq 3 ] || { echo "usage: night.sh SUITE SEED OUT" >&2; exit 254; }
suite=$1 seed=$2 out=$3
labrys=${LABRYS:-$([ -x .venv/bin/labrys ] && echo .venv/bin/labrys || echo labrys)}
mkdir -p "$(dirname "$out")" && mkdir "$out" || { echo "night.sh: $out must be a new folder" >&2; exit 254; }

worst=0
shard=${SHARD:-1/1}
run() {
    file=$1
    shift
    "$labrys" suite "$file" "$@" --fail-on new --seed "$seed" --store "$out/store" --format "${FORMAT:-text}"
    code=$?
    [ "$code" -ne 130 ] || { echo 130 >"$out/exit-code"; exit 130; }
    case $code in
        0) ;;
        1) worst=1 ;;
        2) [ "$worst" -ne 0 ] || worst=2 ;;
        *) [ "$worst" -eq 1 ] || worst=255 ;;
    esac
}

for folder in clusters/systems/*/regressions clusters/systems/*/"before-$(basename "$suite" .toml)"; do
    [ "${shard%%/*}" -ne 1 ] || [ ! -d "$folder" ] || run "$folder"
done
if [ "$shard" = 1/1 ]; then run "$suite"; else run "$suite" --shard "$shard"; fi
echo "$worst" >"$out/exit-code"
exit "$worst"
