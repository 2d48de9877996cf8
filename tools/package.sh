#!/bin/bash
# Packs a static build into BUILD_DIR/varlen-VERSION-ARCH.tar.xz: what `cmake --install`
# installs, documentation and examples. It tries them from the archive: the tools, the C
# interface and the runtime libraries with no LLVM in reach; the C++ interface and the
# plugin with the LLVM of the build.
#
#   tools/package.sh BUILD_DIR
set -euo pipefail
build=$(cd "${1:?wanted a build folder}" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
inputs=$root/test/Package/Inputs
# What may be asked of the system: the C library.
allowed='^(linux-vdso|ld-linux-[a-z0-9-]+|/lib.*/ld-linux-[a-z0-9-]+|libc|libm|libdl|libpthread|librt|libvarlen-c)\.so'
limit=$((40 << 20))

get() { sed -n "s/^$1:.*=//p" "$build/CMakeCache.txt"; }
version=$(get CMAKE_PROJECT_VERSION)
mlir=$(get MLIR_DIR)
name=varlen-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }; }

quietly cmake --install "$build" --prefix "$work/$name"
strip --strip-debug "$work/$name"/lib/*.a
cp "$root/README.md" "$root/LICENSE" "$root/CHANGELOG.md" "$work/$name"
cp -r "$root/docs" "$root/examples" "$work/$name"
find "$work/$name" -name __pycache__ -prune -exec rm -r {} +
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
if grep -rlI -e "$build" -e "$root/" . >&2; then
  echo "$0: wanted no names of folders of this machine in these files" >&2
  exit 1
fi
for file in bin/* lib/lib*.so; do
  others=$(ldd "$file" | awk '{ print $1 }' | grep -vE "$allowed" || true)
  if [ -n "$others" ]; then
    echo "$0: $file wants more of the system than the C library:" $others >&2
    exit 1
  fi
done

# With nothing: the tools.
run() { env -i PATH=/nonexistent LD_LIBRARY_PATH= "$@"; }
run bin/varlen-opt examples/packed.mlir --varlen-to-cpu -o lowered.mlir
grep -q llvm.func lowered.mlir
for entry in f32_full f32_causal bf16_full bf16_causal; do
  quietly run bin/varlen-run examples/packed.mlir --entry=$entry --random=0 \
    --lengths=130,0,1,57 --threads=2 -o $entry.safetensors
done
quietly run bin/varlen-run examples/packed.mlir --entry=bf16_causal --device=sim:sm_80 \
  --random=0 --lengths=37,0,3 -o sim.safetensors
python3 "$inputs/initialize.py" env -i PATH=/nonexistent LD_LIBRARY_PATH= \
  bin/varlen-lsp-server >"$work/answer" 2>"$work/log" || true
grep -q '"hoverProvider": true' "$work/answer" && grep -qF 'valid.mlir []' "$work/answer" || {
  cat "$work/log" "$work/answer" >&2
  echo "$0: wanted answers of varlen-lsp-server to an editor" >&2
  exit 1
}

# With a compiler for C, and nothing else: a compiled function, and the C interface.
bin/varlen-opt examples/iree/attention.mlir --emit=so --header=attention.h -o libattention.so
echo '#include "attention.h"' | cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I . -x c -
cc -std=c11 -Wall -Wextra -Werror -I include "$root/test/CAPI/call.c" -L lib -lvarlen-c \
  -Wl,-rpath,"$PWD/lib" -lm -o call
bin/varlen-opt "$root/test/CAPI/Inputs/attention.mlir" --emit-bytecode -o call.mlirbc
run ./call call.mlirbc

wanted() {
  "${@:2}" >"$work/log" 2>&1 || true
  grep -qF -e "$1" "$work/log" || {
    echo "$0: wanted '$1' of ${*:2}, got:" >&2
    cat "$work/log" >&2
    exit 1
  }
}
# Kernels and the C that launches them, with the tests' driver.
kernels=$root/test/Runtime/Inputs/attention.mlir
mkdir launcher
awk -v folder=launcher -f "$root/test/Runtime/Inputs/examples.awk" docs/kernel-abi.md
run bin/varlen-opt "$kernels" --emit=c-launcher --image=ptx --header=launcher/attention.h \
  -o launcher/attention.c
cc -std=c99 -Wall -Wextra -Werror -I launcher "$inputs/launcher/host.c" launcher/attention.c \
  -L "$build/lib/fake-cuda" -l:libcuda.so.1 -Wl,-rpath,"$build/lib/fake-cuda" -o launcher/host
wanted 'captured: 0' run launcher/host

# The same, and CMake.
consume() {
  quietly cmake -S "$inputs/$1" -B "$work/$1" -G Ninja -DCMAKE_PREFIX_PATH="$PWD" "${@:2}"
  quietly cmake --build "$work/$1"
}
consume c-only -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON
wanted '0 1 3 6' run "$work/c-only/capi"
for host in host host-shared; do
  wanted '-1 tiles: cu_seqlens_q[2] = 3 is smaller than cu_seqlens_q[1] = 5' \
    run "$work/c-only/$host"
done
quietly run "$work/c-only/gpu"
run bin/varlen-opt "$kernels" --varlen-to-nvvm=format=sim |
  "$mlir/../../../bin/mlir-translate" --mlir-to-llvmir |
  clang-22 -x ir - -O1 -fPIC -Wno-override-module -c -o "$work/kernels.o"
consume executor -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON -DKERNELS="$work/kernels.o"
wanted '0.5 8.69315' run "$work/executor/program"

# With the LLVM that the archive is for: C++, and the plugin.
consume consumer -DMLIR_DIR="$mlir" -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22
wanted 'error: cu_seqlens_q[1] = 5 is larger than the 4 rows of q' "$work/consumer/consumer"
"$mlir/../../../bin/mlir-opt" --load-dialect-plugin=lib/VarlenPlugin.so \
  --pass-pipeline='builtin.module(varlen-lower-attn-to-cpu)' examples/iree/attention.mlir |
  grep -c "call @attention_attn(" >"$work/log"

mv "$work/$name.tar.xz" "$build"
echo "$build/$name.tar.xz: $(awk "BEGIN { printf \"%.1f\", $size / 1048576 }") MiB"
du -cLb bin/* lib/*.so lib/*.a | sort -rn | awk '{ printf "%8.1f MB %s\n", $1 / 1e6, $2 }'
