#!/bin/bash
# Makes BUILD_DIR/varlen-VERSION-py3-none-PLATFORM.whl of a static build and tries
# it in virtual environments of its own, with no LLVM and no checkout in reach.
#
#   tools/wheel.sh BUILD_DIR [PYTHON...]
#
# PYTHON are the interpreters that it is tried with; python3 by default.
set -euo pipefail
build=$(cd "${1:?wanted a build folder}" && pwd)
shift
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
  venv=$work/venv-$((count += 1))
  "$python" -m venv "$venv"
  # First without numpy: the package itself needs none.
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$build/$wheel"
  run() {
    (cd "$work" && env -i HOME="$work" PATH=/nonexistent LD_LIBRARY_PATH= \
      VARLEN_CACHE_DIR="$work/cache" "$@")
  }
  run "$venv/bin/python" "$root/tools/wheel/without-numpy.py"
  run "$venv/bin/varlen-opt" "$root/examples/packed.mlir" --varlen-to-cpu -o lowered.mlir
  grep -q llvm.func "$work/lowered.mlir"
  run "$venv/bin/varlen-run" "$root/examples/packed.mlir" --entry=bf16_causal --random=0 \
    --lengths=130,0,1,57 --threads=2 -o out.safetensors >/dev/null
  "$venv/bin/pip" install --quiet --disable-pip-version-check \
    $(grep -E '^(numpy|ml_dtypes)==' "$root/python/requirements-test.txt")
  for test in attn arguments compile processes; do
    run PYTHONPATH="$root/test/Python/Inputs" "$venv/bin/python" "$root/test/Python/$test.py" "$work/one.mlir"
  done
  "$venv/bin/pip" install --quiet --disable-pip-version-check \
    --requirement "$root/python/requirements-jax.txt"
  run PYTHONPATH="$root/test/Python/Inputs" "$venv/bin/python" "$root/test/JAX/transforms.py"
  echo "$wheel: $("$venv/bin/python" -V), as installed: passed"
done
echo "$build/$wheel: $(awk "BEGIN { printf \"%.1f\", $size / 1e6 }") MB"
