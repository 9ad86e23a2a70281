#!/bin/sh
# Opens an issue for each suite with a wrong verdict, or adds a comment to the issue that is open already.
#
# usage: issue.sh URL NIGHT...
#
# URL leads to the run of the workflow. Each NIGHT is a folder that pack.sh has filled; its name is that of the suite. `gh` needs
# GH_TOKEN with the permission `issues: write`, and GH_REPO or a clone.
set -eu

[ $# -ge 2 ] || { echo "usage: issue.sh URL NIGHT..." >&2; exit 254; }
url=$1
shift
max_bytes=60000 # GitHub takes 65536 characters

body=$(mktemp)
trap 'rm -f "$body"' EXIT
for night in "$@"; do
    [ "$(cat "$night/exit-code")" -eq 1 ] || continue
    title="Labrys: wrong verdict in the suite $(basename "$night")"
    { head -c "$max_bytes" "$night/summary.md"; printf '\n\nThe run of the workflow has the store and the reports: %s\n' "$url"; } >"$body"
    number=$(gh issue list --state open --search "in:title \"$title\"" --json number,title \
        --jq "[.[] | select(.title == \"$title\")][0].number // empty")
    if [ -n "$number" ]; then
        gh issue comment "$number" --body-file "$body"
    else
        gh issue create --title "$title" --body-file "$body"
    fi
done
