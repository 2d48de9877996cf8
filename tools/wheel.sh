#!/bin/bash
# Makes BUILD_DIR/varlen-VERSION-py3-none-PLATFORM.whl of a static build and tries
# it in virtual environments of its own, with no LLVM and no checkout in reach.
#
#   tools/wheel.sh BUILD_DIR [--with=PACKAGES] [PYTHON...]
#
# PYTHON are the interpreters that it is tried with; python3 by default. PACKAGES, with
# commas, are those that it is tried beside, in this order; numpy,onnx,jax,torch by default
# (tools/wheel/try.sh). An interpreter for which a package has no release yet is tried
# without it: --with=numpy,onnx,jax.
set -euo pipefail
build=$(cd "${1:?wanted a build folder}" && pwd)
shift
packages='numpy onnx jax torch'
case ${1-} in
--with=*)
  packages=${1#--with=}
  packages=${packages//,/ }
  shift
  ;;
-*)
  echo "$0: wanted --with=PACKAGES or interpreters, got '$1'" >&2
  exit 2
  ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
limit=$((40 << 20))
# What may be asked of the system: the C library.
allowed='^(linux-vdso|ld-linux-[a-z0-9-]+|/lib.*/ld-linux-[a-z0-9-]+|libc|libm|libdl|libpthread|librt|libvarlen-c)\.so'

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' "$build/CMakeCache.txt")
binaries=$build/wheel/varlen
for file in "$binaries"/bin/* "$binaries"/lib/*; do
  others=$(ldd "$file" | awk '{ print $1 }' | grep -vE "$allowed" || true)
  if [ -n "$others" ]; then
    echo "$0: $file wants more of the system than the C library:" $others >&2
    exit 1
  fi
done
# The oldest C library that has all that is called.
glibc=$(objdump -T "$binaries"/bin/* "$binaries"/lib/* |
  grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | sed 's/GLIBC_//; s/\./_/')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source" "$work/wheel"
cp -r "$root/python/varlen" "$root/python/pyproject.toml" "$root/python/setup.py" \
  "$root/README.md" "$root/LICENSE" "$work/source"
find "$work/source" -name __pycache__ -prune -exec rm -r {} +
cp -r "$binaries/bin" "$binaries/lib" "$work/source/varlen"
VARLEN_VERSION=$version VARLEN_PLATFORM=manylinux_${glibc}_$(uname -m) \
  "${PYTHON:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps \
  --wheel-dir "$work/wheel" "$work/source"
wheel=$(basename "$work"/wheel/*.whl)
size=$(stat -c %s "$work/wheel/$wheel")
if [ "$size" -gt "$limit" ]; then
  echo "$0: wanted at most $limit bytes, got $size" >&2
  exit 1
fi
rm -f "$build"/varlen-*.whl
cp "$work/wheel/$wheel" "$build"

count=0
for python in "${@:-python3}"; do
  folder=$work/trial-$((count += 1))
  mkdir "$folder"
  "$python" -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$build/$wheel"
  # shellcheck disable=SC2086 # a word for each package
  "$root/tools/wheel/try.sh" "$folder" $packages
  echo "$wheel: $("$folder/venv/bin/python" -V), as installed, with ${packages:-no other package}: passed"
done
echo "$build/$wheel: $(awk "BEGIN { printf \"%.1f\", $size / 1e6 }") MB"
