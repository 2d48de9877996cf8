#!/bin/bash
# Packs a static build into build/varlen-VERSION-ARCH.tar.xz: the tools, libvarlen-c,
# which has LLVM and the tools' code in it, the runtime libraries that compiled functions
# need, the headers of these, documentation and examples. It tries them from the archive,
# with no LLVM in reach.
#
#   tools/package.sh BUILD_DIR
set -euo pipefail
build=$(cd "${1:?wanted a build folder}" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
# What may be asked of the system: the C library.
allowed='^(linux-vdso|ld-linux-[a-z0-9-]+|/lib.*/ld-linux-[a-z0-9-]+|libc|libm|libdl|libpthread|librt|libvarlen-c)\.so'
limit=$((40 << 20))

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' "$build/CMakeCache.txt")
name=varlen-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The tools of the wheel: LLVM is there once.
mkdir -p "$work/$name/include/varlen"
cp -r "$build/wheel/varlen/bin" "$build/wheel/varlen/lib" "$work/$name"
for library in VarlenRuntime VarlenGPURuntime VarlenMGPU; do
  cp "$build/lib/lib$library.a" "$work/$name/lib"
done
strip --strip-debug "$work/$name"/lib/*.a
cp -r "$root/include/varlen-c" "$work/$name/include"
cp -r "$root/include/varlen/Runtime" "$work/$name/include/varlen"
cp "$root/README.md" "$root/LICENSE" "$work/$name"
cp -r "$root/docs" "$root/examples" "$work/$name"
echo "packing $name.tar.xz"
tar -C "$work" -cf - "$name" | xz -T0 -6 >"$work/$name.tar.xz"
size=$(stat -c %s "$work/$name.tar.xz")
if [ "$size" -gt "$limit" ]; then
  echo "$0: wanted at most $limit bytes, got $size" >&2
  exit 1
fi

mkdir "$work/unpacked"
tar -C "$work/unpacked" -xf "$work/$name.tar.xz"
cd "$work/unpacked/$name"
for file in bin/* lib/*.so; do
  others=$(ldd "$file" | awk '{ print $1 }' | grep -vE "$allowed" || true)
  if [ -n "$others" ]; then
    echo "$0: $file wants more of the system than the C library:" $others >&2
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
# With a compiler for C, and nothing else: a compiled function, and the C interface.
bin/varlen-opt examples/iree/attention.mlir --emit=so --header=attention.h -o libattention.so
echo '#include "attention.h"' | cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I . -x c -
cc -std=c11 -Wall -Wextra -Werror -I include "$root/test/CAPI/call.c" -L lib -lvarlen-c \
  -Wl,-rpath,"$PWD/lib" -lm -o call
bin/varlen-opt "$root/test/CAPI/Inputs/attention.mlir" --emit-bytecode -o call.mlirbc
run ./call call.mlirbc
mv "$work/$name.tar.xz" "$build"
echo "$build/$name.tar.xz: $(((size + (1 << 19)) >> 20)) MiB, $(
  stat -c '%n %s' bin/* lib/* | awk '{ printf "%s%s %.1f MB", s, $1, $2 / 1e6; s = ", " }')"
