#!/bin/sh
# Lists the issues of the nightly, or carries out what `labrys triage --actions` says about them.
#
# usage: issue.sh list ISSUES | issue.sh carry-out ACTIONS
#
# `list` writes the open and closed issues with the label `labrys` into ISSUES, as JSON. `carry-out` opens, comments on, opens again
# and closes issues as ACTIONS says; both need jq. TRACKER names the place:
#
#   print    the default: `list` writes an empty list, and `carry-out` only prints what it would do
#   github   by `gh`, which needs GH_TOKEN with the permission `issues: write`, and GH_REPO or a clone
#   gitlab   by curl; GITLAB_TOKEN is the token of a project with the scope `api`, and CI_API_V4_URL and CI_PROJECT_ID are set in a
#            pipeline
set -eu

[ $# -eq 2 ] || { echo "usage: issue.sh list ISSUES | issue.sh carry-out ACTIONS" >&2; exit 254; }
tracker=${TRACKER:-print}
label=labrys # only people of the repository can give it, so nobody else gets an issue closed
case $tracker in print | github | gitlab) ;; *)
    echo "issue.sh: TRACKER is $tracker; expected print, github or gitlab" >&2
    exit 254
    ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Calls the API of GitLab: METHOD PATH and further arguments of curl. No list of processes shows the token.
gitlab() {
    method=$1 path=$2
    shift 2
    printf 'header = "PRIVATE-TOKEN: %s"\n' "$GITLAB_TOKEN" |
        curl --config - --silent --show-error --fail --request "$method" "$CI_API_V4_URL/projects/$CI_PROJECT_ID/$path" "$@"
}

list() {
    case $tracker in
        print) echo "[]" ;;
        github)
            gh issue list --label "$label" --state all --limit 5000 --json number,state,body,url,closedAt
            ;;
        gitlab)
            page=1
            while
                gitlab GET "issues?labels=$label&state=all&scope=all&per_page=100&page=$page" >"$work/$page.json"
                [ "$(jq length "$work/$page.json")" -eq 100 ]
            do page=$((page + 1)); done
            jq --slurp 'add' "$work"/*.json
            ;;
    esac
}

# Carries out one action: DO NUMBER, with the texts in $work/title and $work/body.
carry_out() {
    case $tracker in
        print)
            echo "$1 $2 $(cat "$work/title")"
            sed 's/^/    /' "$work/body"
            ;;
        github)
            case $1 in
                open) gh issue create --label "$label" --title "$(cat "$work/title")" --body-file "$work/body" ;;
                *) gh issue comment "$2" --body-file "$work/body" ;;
            esac
            case $1 in close | reopen) gh issue "$1" "$2" ;; esac
            ;;
        gitlab)
            case $1 in
                open)
                    gitlab POST issues --data-urlencode "title@$work/title" --data-urlencode "description@$work/body" \
                        --data-urlencode "labels=$label"
                    ;;
                *) gitlab POST "issues/$2/notes" --data-urlencode "body@$work/body" ;;
            esac >/dev/null
            case $1 in close | reopen) gitlab PUT "issues/$2" --data "state_event=$1" >/dev/null ;; esac
            ;;
    esac
}

case $1 in
    list)
        list >"$work/issues.json"
        mv "$work/issues.json" "$2"
        ;;
    carry-out)
        number=$(jq '.actions | length' "$2")
        [ "$tracker" != github ] || [ "$number" -eq 0 ] ||
            gh label create "$label" --force --description "Opened and closed by the nightly of Labrys"
        index=0
        while [ "$index" -lt "$number" ]; do
            jq --join-output ".actions[$index].title" "$2" >"$work/title"
            jq --raw-output ".actions[$index].body" "$2" >"$work/body"
            carry_out "$(jq --raw-output ".actions[$index].do" "$2")" "$(jq --raw-output ".actions[$index].number // \"-\"" "$2")"
            index=$((index + 1))
        done
        jq --raw-output '.left[] | "no action for \(.cause): \(.why)"' "$2"
        ;;
    *)
        echo "usage: issue.sh list ISSUES | issue.sh carry-out ACTIONS" >&2
        exit 254
        ;;
esac
