#!/bin/sh
# Makes a virtual environment with this Labrys, and with packages of your own.
#
# usage: install.sh FOLDER [PACKAGE...]
#
# FOLDER becomes the environment, and FOLDER/bin/labrys the command. Each PACKAGE is what pip takes, e.g. ./labrys-my-store. The
# script makes a wheel of the clone that it is in. WHEEL names a wheel that is there already; then nothing is built.
set -eu

[ $# -ge 1 ] || { echo "usage: install.sh FOLDER [PACKAGE...]" >&2; exit 254; }
folder=$1
shift
clone=$(cd "$(dirname "$0")/../.." && pwd)
wheel=${WHEEL:-}
if [ -z "$wheel" ]; then
    make -C "$clone" dist
    for wheel in "$clone"/dist/labrys-*.whl; do :; done
fi
[ -f "$wheel" ] || { echo "install.sh: $wheel is no file; expected a wheel of Labrys" >&2; exit 254; }
python3 -m venv "$folder"
install() {
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}
install --force-reinstall --no-deps "$wheel" # pip leaves an older build of the same version as it is
install "$wheel" "$@"
"$folder/bin/labrys" --version
