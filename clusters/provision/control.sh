#!/bin/sh
# Installs what a machine needs to build and run Labrys: a control node, a developer's machine, or CI.
#
# usage: control.sh [clippy] [optional]
#
#   clippy      also Rust's linter, for `make lint`
#   optional    also the programs without which some tests skip: Chromium and fish. If the system's packages lack one, the
#               script names it and goes on.
#
# Debian or Ubuntu. Only what is missing is installed, so a second run changes nothing and needs no network. Every
# requirement is tested by what it can do, not by a package's name: a JDK, Rust or Python from elsewhere is as good.
set -eu

clippy=no
optional=no
for word in "$@"; do
    case "$word" in
        clippy) clippy=yes ;;
        optional) optional=yes ;;
        *) echo "usage: control.sh [clippy] [optional]" >&2; exit 254 ;;
    esac
done

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

# candidate PACKAGE: the version that apt would install, or nothing.
candidate() {
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p' | grep -v '^(none)$' || true
}

update() {
    [ "$as_root" = false ] || [ "$apt_updated" = yes ] || { $as_root apt-get update -qq && apt_updated=yes; }
}

# Ubuntu's versioned packages have their programs in a folder of their own, outside of PATH.
link_versioned() {
    for versioned in /usr/lib/rust-*/bin; do
        for program in "$@"; do
            [ ! -x "$versioned/$program" ] || $as_root ln -sf "$versioned/$program" /usr/local/bin/
        done
    done
}

if ! cargo_works; then
    # The newest packaged tool chain that the kernel can be built with: Debian 12 has it as cargo-web, Ubuntu as cargo-1.NN.
    update
    for package in cargo cargo-web $(apt-cache pkgnames cargo-1. 2>/dev/null | sort -rV); do
        found=$(candidate "$package")
        if version_at_least "${found%%[+~-]*}" 1 85; then
            case "$package" in cargo-1.*) install "$package" "rustc-${package#cargo-}" ;; *) install "$package" ;; esac
            break
        fi
    done
    cargo_works || link_versioned cargo rustc
    cargo_works || fail "Rust 1.85 or later is needed to build the checker's kernel, and no package here has it. Install it (rustup), and run this again."
fi

clippy_works() {
    cargo clippy --version >/dev/null 2>&1
}

if [ "$clippy" = yes ] && ! clippy_works; then
    # The linter must be of the same version as the compiler, so it comes from the same source: rust-clippy with cargo,
    # rust-web-clippy with cargo-web, rust-1.NN-clippy with cargo-1.NN.
    update
    have=$(cargo --version | cut -d' ' -f2)
    for package in rust-clippy rust-web-clippy "rust-${have%.*}-clippy"; do
        found=$(candidate "$package")
        case "$found" in "$have"[+~-]*) install "$package"; break ;; esac
    done
    clippy_works || link_versioned cargo-clippy clippy-driver
    clippy_works || fail "clippy is needed for cargo $have, and no package here has it. With rustup: rustup component add clippy. Run this again."
fi

# optional_program PACKAGE NAME...: installs the package if no program of these names is there.
optional_program() {
    package=$1
    shift
    for program in "$@"; do
        ! command -v "$program" >/dev/null 2>&1 || return 0
    done
    if [ "$as_root" != false ] && command -v apt-get >/dev/null 2>&1; then
        update || true
        [ -z "$(candidate "$package")" ] || (install "$package") || true
    fi
    for program in "$@"; do
        ! command -v "$program" >/dev/null 2>&1 || return 0
    done
    echo "control.sh: $package could not be installed; the tests that need it skip" >&2
}

if [ "$optional" = yes ]; then
    optional_program chromium chromium chromium-browser google-chrome
    optional_program fish fish
fi
