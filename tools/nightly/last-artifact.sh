#!/bin/sh
# Fetches an artifact of the newest night that has one, e.g. its trend page, into OUT. The first night has none.
#
# usage: last-artifact.sh ARTIFACT WORKFLOW BRANCH OUT
#
# `gh` needs GH_TOKEN with the permission `actions: read`, and GH_REPO or a clone.
set -eu

[ $# -eq 4 ] || { echo "usage: last-artifact.sh ARTIFACT WORKFLOW BRANCH OUT" >&2; exit 254; }
for run in $(gh run list --workflow "$2" --branch "$3" --limit 30 --json databaseId --jq '.[].databaseId'); do
    if gh run download "$run" --name "$1" --dir "$4" 2>/dev/null; then
        echo "the artifact $1 of run $run goes on"
        exit 0
    fi
    rm -rf "$4"
done
echo "no earlier run has the artifact $1; a new one begins"
