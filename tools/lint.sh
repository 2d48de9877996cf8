#!/bin/sh
# Runs clang-tidy over the sources of a build that are newer than its last clean
# run.
#
#   tools/lint.sh BUILD_DIR [FILE...]
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
if [ $# -eq 0 ]; then
  set -- $(find executor/lib lib tools -name '*.cpp')
fi
printf '%s\n' "$@" | nice xargs -P "$(nproc)" -n 1 clang-tidy-22 -p "$build" --quiet --warnings-as-errors='*'
