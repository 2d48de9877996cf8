#!/bin/sh
# Formats the C++ sources, or with --check says which are not formatted.
set -eu
cd "$(dirname "$0")/.."
case ${1-} in
'') mode=-i ;;
--check) mode='--dry-run --Werror' ;;
*)
  echo "$0: wanted --check or nothing, got '$1'" >&2
  exit 2
  ;;
esac
# shellcheck disable=SC2086 # two words
find cmake executor include lib tools test \( -name '*.h' -o -name '*.cpp' -o -name '*.c' \) -print0 |
  xargs -0 -r clang-format-22 $mode
