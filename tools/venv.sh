#!/bin/sh
# Makes the virtual environment BUILD_DIR/venv and installs what a requirements
# file names. A file that is installed already costs nothing and needs no
# network: its checksum is kept beside the environment.
#
#   tools/venv.sh BUILD_DIR [REQUIREMENTS_FILE]
#
# PYTHON chooses the interpreter the environment is made from.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: $0 BUILD_DIR [REQUIREMENTS_FILE]" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
requirements=${2:-$root/python/requirements-test.txt}
if [ ! -r "$requirements" ]; then
  echo "$0: wanted a requirements file, got '$requirements', which cannot be read" >&2
  exit 1
fi
mkdir -p "$1"
venv=$(cd "$1" && pwd)/venv
python=$venv/bin/python

# An environment whose interpreter is gone or whose creation was interrupted is
# made again from nothing: it holds nothing that cannot be installed again.
if ! [ -x "$python" ] || ! "$python" -m pip --version >/dev/null 2>&1; then
  rm -rf "$venv"
  if ! "${PYTHON:-python3}" -m venv "$venv"; then
    rm -rf "$venv"
    echo "$0: '${PYTHON:-python3} -m venv' failed; Debian has it in the package python3-venv" >&2
    exit 1
  fi
fi

stamp=$venv/.installed-$(cksum <"$requirements" | tr ' ' '-')
if ! [ -e "$stamp" ]; then
  echo "installing the Python packages of $(basename "$(dirname "$requirements")")/$(basename "$requirements") into $venv"
  # A file may name a further index as "# extra index: URL". It is used where it
  # answers: pip itself would wait and retry once for every package.
  index=$(sed -n 's/^# extra index: //p' "$requirements")
  if [ -n "$index" ] && ! "$python" -c 'import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=5)' "$index" >/dev/null 2>&1; then
    index=
  fi
  "$python" -m pip install --quiet --disable-pip-version-check \
    ${index:+--extra-index-url "$index"} --requirement "$requirements"
  touch "$stamp"
fi
