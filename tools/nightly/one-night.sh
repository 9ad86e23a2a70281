#!/bin/sh
# A night without a CI server: runs a suite with today's date as the seed, packs it, and adds it to the trend page.
#
# usage: one-night.sh SUITE FOLDER      as root, in the folder of the repository
#
# SUITE is a name in suites/ of that folder, or in the suites/ of a system of Labrys. LABRYS names the command, as in night.sh. FOLDER gets a folder `nights/DAY/SUITE` for each night, and `trend`. A second night of one day is refused.
set -u

[ $# -eq 2 ] || { echo "usage: one-night.sh SUITE FOLDER" >&2; exit 254; }
tools=$(dirname "$0")
day=$(date -u +%Y%m%d)
night=$2/nights/$day/$1
[ ! -e "$night" ] || { echo "one-night.sh: $night is there already; remove it to run this night again" >&2; exit 254; }
suite=$(ls clusters/systems/*/suites/"$1.toml" 2>/dev/null) || suite=suites/$1.toml
sh "$tools/night.sh" "$suite" "$day" "$night"
code=$?
sh "$tools/pack.sh" "$night" && sh "$tools/trend.sh" "$2/trend" "$night" || { [ "$code" -ne 0 ] || code=255; }
cat "$night/summary.md"
exit "$code"
