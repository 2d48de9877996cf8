#!/bin/bash
# Packs the tools of a static build into build/varlen-VERSION-ARCH.tar.xz, and
# tries them from the archive, with no LLVM in reach.
#
#   tools/package.sh BUILD_DIR
set -euo pipefail
build=${1:?wanted a build folder}
root=$(cd "$(dirname "$0")/.." && pwd)
# What may be asked of the system: the C library.
allowed='^(linux-vdso|ld-linux-[a-z0-9-]+|/lib.*/ld-linux-[a-z0-9-]+|libc|libm|libdl|libpthread|librt)\.so'
limit=$((64 << 20))

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' "$build/CMakeCache.txt")
name=varlen-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/$name/bin"
cp "$build"/bin/varlen-opt "$build"/bin/varlen-run "$work/$name/bin"
cp "$root/README.md" "$root/LICENSE" "$work/$name"
cp -r "$root/docs" "$root/examples" "$work/$name"
echo "packing $name.tar.xz"
tar -C "$work" -cf - "$name" | xz -T0 -6 >"$build/$name.tar.xz"
size=$(stat -c %s "$build/$name.tar.xz")
if [ "$size" -ge "$limit" ]; then
  echo "$0: wanted less than $limit bytes, got $size" >&2
  exit 1
fi

mkdir "$work/unpacked"
tar -C "$work/unpacked" -xf "$build/$name.tar.xz"
cd "$work/unpacked/$name"
for tool in bin/*; do
  others=$(ldd "$tool" | awk '{ print $1 }' | grep -vE "$allowed" || true)
  if [ -n "$others" ]; then
    echo "$0: $tool wants more of the system than the C library:" $others >&2
    exit 1
  fi
done
run() { env -i PATH=/nonexistent LD_LIBRARY_PATH= "$@"; }
run bin/varlen-opt examples/packed.mlir --varlen-to-cpu -o lowered.mlir
grep -q llvm.func lowered.mlir
for entry in f32_full f32_causal bf16_full bf16_causal; do
  run bin/varlen-run examples/packed.mlir --entry=$entry --random=0 \
    --lengths=130,0,1,57 --threads=2 -o $entry.safetensors >run.log || {
    cat run.log
    exit 1
  }
done
echo "$build/$name.tar.xz: $(((size + (1 << 19)) >> 20)) MiB, $(
  stat -c '%n %s' bin/* | awk '{ printf "%s%s %.1f MB", s, $1, $2 / 1e6; s = ", " }')"
