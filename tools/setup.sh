#!/bin/sh
# Installs the Debian packages that the named jobs need and that are missing.
# With nothing missing it touches neither the network nor the system.
#
#   tools/setup.sh [build] [check] [release] [asan] [lint] [site]
set -eu

# What a job needs; the only list of packages in the project.
packages() {
  case $1 in
  build) echo clang-22 lld-22 llvm-22-dev libmlir-22-dev mlir-22-tools ccache cmake g++ ninja-build python3 ;;
  check)
    echo clang-format-22 libclang-rt-22-dev llvm-22-tools python3-venv openmpi-bin libopenmpi-dev
    # On x86-64 the AArch64 objects are linked by a cross compiler and run by an emulator.
    if [ "$(uname -m)" = x86_64 ]; then
      echo g++-aarch64-linux-gnu qemu-user
    fi
    ;;
  release) echo libzstd-dev zlib1g-dev xz-utils ;;
  asan) echo libclang-rt-22-dev llvm-22 ;;
  lint) echo clang-format-22 clang-tidy-22 clang-tools-22 ;;
  site) echo python3-venv ;;
  *)
    echo "$0: wanted build, check, release, asan, lint or site, got '$1'" >&2
    exit 2
    ;;
  esac
}

# Each job in its own command, so that a wrong name ends the script.
wanted=
for job in "$@"; do
  list=$(packages "$job")
  wanted="$wanted $list"
done

if ! command -v dpkg-query >/dev/null; then
  echo "$0: not a Debian system; needed are what Debian calls:$wanted" >&2
  exit 0
fi

missing=
for package in $wanted; do
  if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
    missing="$missing $package"
  fi
done
if [ -z "$missing" ]; then
  exit 0
fi

sudo=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "$0: as root, run: apt-get install --no-install-recommends$missing" >&2
    exit 1
  fi
  sudo=sudo
fi
echo "installing:$missing"
$sudo apt-get -qq update
# shellcheck disable=SC2086 # a list of names
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $missing </dev/null
