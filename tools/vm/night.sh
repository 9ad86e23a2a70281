#!/bin/sh
# A night in emulated virtual machines: makes a control node and five nodes, tests from the control node, and fetches the runs.
#
# usage: night.sh OUT [OPTION...]      as root, in the folder of the repository, with the box of box.sh in build/vm
#
# OUT is a new folder. It gets machines.log, suite.log, exit-code, and store/ with the runs and their reports. SUITE names the
# suite; it is tools/vm/suite.toml by default. The options go to `labrys suite`, e.g. --only main --seed 19. The script ends with
# the code of `labrys suite`. It removes the machines at its end, and also if it is interrupted. With KEEP=1 it leaves them.
set -u

[ $# -ge 1 ] || { echo "usage: night.sh OUT [OPTION...]" >&2; exit 254; }
out=$1
shift
tools=$(dirname "$0")
box=build/vm/labrys.box
suite=${SUITE:-tools/vm/suite.toml}
[ -e "$box" ] || { echo "night.sh: $box is missing; \`make vm-box\` makes it" >&2; exit 254; }
[ -e "$suite" ] || { echo "night.sh: there is no suite $suite" >&2; exit 254; }
mkdir -p "$(dirname "$out")" && mkdir "$out" || { echo "night.sh: $out must be a new folder" >&2; exit 254; }

export LABRYS_VM_BOX="${LABRYS_VM_BOX:-labrys}" LABRYS_VM_DRIVER="${LABRYS_VM_DRIVER:-qemu}"
export LABRYS_VM_NODE_MEMORY_MB="${LABRYS_VM_NODE_MEMORY_MB:-640}"
export LABRYS_VM_CONTROL_MEMORY_MB="${LABRYS_VM_CONTROL_MEMORY_MB:-1536}" LABRYS_VM_CONTROL_CPUS="${LABRYS_VM_CONTROL_CPUS:-1}"

lab() { sh "$tools/lab.sh" run "$@" </dev/null; }
on_control() { lab vagrant ssh control --command "$1"; }
step() { # WHAT COMMAND...: runs one step with its output in the log; a step that fails ends the night
    echo "night.sh: $(date -u +%H:%M:%S) $1"
    shift
    "$@" >>"$out/machines.log" 2>&1 || { echo "night.sh: this failed; the end of $out/machines.log:" >&2; tail "$out/machines.log" >&2; exit 255; }
}
end() {
    [ -z "${KEEP:-}" ] || { echo "night.sh: the machines are left; \`sh $tools/lab.sh down\` removes them"; return; }
    echo "night.sh: $(date -u +%H:%M:%S) removing the machines"
    lab vagrant destroy --force >>"$out/machines.log" 2>&1
    sh "$tools/lab.sh" down
}
quoted() { # WORD...: the words as a shell reads them
    for word; do printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")"; done
}
fetch() {
    lab vagrant ssh control --command 'tar -C ~ -czf - store' >"$out/store.tar.gz" && tar -xzf "$out/store.tar.gz" -C "$out"
}
trap end EXIT
trap 'exit 130' INT TERM

step "starting the lab" sh "$tools/lab.sh" up
lab vagrant box list 2>/dev/null | grep -q "^$LABRYS_VM_BOX " || step "adding the box" lab vagrant box add --name "$LABRYS_VM_BOX" "$box"
step "vagrant up" lab vagrant up
step "copying the sources" lab vagrant rsync control
step "installing Labrys on the control node" on_control \
    '/opt/labrys/bin/pip install --quiet --no-index --no-deps --force-reinstall "$(ls -t /labrys/dist/labrys-*.whl | head -n 1)"'
step "asking each node what it lacks" on_control '/opt/labrys/bin/labrys doctor --slowness 8 --inventory /labrys-inventory.toml'

echo "night.sh: $(date -u +%H:%M:%S) labrys suite $suite $*"
{ on_control "cd /labrys && /opt/labrys/bin/labrys suite $suite --store ~/store$(quoted "$@")" 2>&1; echo $? >"$out/exit-code"; } | tee "$out/suite.log"
step "fetching the runs" fetch
exit "$(cat "$out/exit-code")"
