#!/bin/sh
# Installs what a machine needs to build and run Labrys: a control node, a developer's machine, or CI.
#
# Debian or Ubuntu. Only what is missing is installed, so a second run changes nothing and needs no network. Every
# requirement is tested by what it can do, not by a package's name: a JDK, Rust or Python from elsewhere is as good.
set -eu

fail() {
    echo "control.sh: $*" >&2
    exit 1
}

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo"
else
    as_root="false"
fi

apt_updated=no
install() {
    [ "$as_root" != false ] || fail "these packages are missing: $*. Install them as root, or install sudo, and run this again."
    command -v apt-get >/dev/null 2>&1 || fail "these packages are missing: $*. This script knows Debian and Ubuntu only; install them by hand and run it again."
    if [ "$apt_updated" = no ]; then
        $as_root apt-get update -qq
        apt_updated=yes
    fi
    echo "control.sh: installing $*"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# version_at_least HAVE MAJOR MINOR: whether HAVE (a dotted number) is at least MAJOR.MINOR.
version_at_least() {
    major=${1%%.*}
    rest=${1#*.}
    minor=${rest%%.*}
    case "$major$minor" in *[!0-9]* | "") return 1 ;; esac
    [ "$major" -gt "$2" ] || { [ "$major" -eq "$2" ] && [ "$minor" -ge "$3" ]; }
}

python_works() {
    command -v python3 >/dev/null 2>&1 &&
        python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

cargo_works() {
    command -v cargo >/dev/null 2>&1 && version_at_least "$(cargo --version 2>/dev/null | cut -d' ' -f2)" 1 85
}

jdk_works() {
    command -v javac >/dev/null 2>&1 && version_at_least "$(javac -version 2>&1 | cut -d' ' -f2 | sed 's/$/.0/')" 17 0
}

missing=""
for pair in iptables:iptables sshd:openssh-server ip:iproute2 unshare:util-linux ps:procps mvn:maven cc:gcc faketime:faketime; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
cc_headers=/usr/include/stdio.h
[ -e "$cc_headers" ] || missing="$missing libc6-dev"
jdk_works || missing="$missing openjdk-17-jdk-headless"
# shellcheck disable=SC2086 # a list of package names
[ -z "$missing" ] || install $missing
jdk_works || fail "a JDK 17 or later is needed, but javac answers: $(javac -version 2>&1 || echo 'no javac')"

if ! python_works; then
    install python3 python3-venv
    python_works || fail "Python 3.11 or later with venv is needed; python3 is $(python3 --version 2>&1). Put a newer one first on PATH."
fi

if ! cargo_works; then
    # The newest packaged tool chain that the kernel can be built with: Debian 12 has it as cargo-web, Ubuntu as cargo-1.NN.
    [ "$as_root" = false ] || { $as_root apt-get update -qq && apt_updated=yes; }
    for package in cargo cargo-web $(apt-cache pkgnames cargo-1. 2>/dev/null | sort -rV); do
        candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p')
        if version_at_least "${candidate%%[+~-]*}" 1 85; then
            case "$package" in cargo-1.*) install "$package" "rustc-${package#cargo-}" ;; *) install "$package" ;; esac
            break
        fi
    done
    cargo_works || for versioned in /usr/lib/rust-*/bin; do
        [ ! -x "$versioned/cargo" ] || $as_root ln -sf "$versioned/cargo" "$versioned/rustc" /usr/local/bin/
    done
    cargo_works || fail "Rust 1.85 or later is needed to build the checker's kernel, and no package here has it. Install it (rustup), and run this again."
fi
