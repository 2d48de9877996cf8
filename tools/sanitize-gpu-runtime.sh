#!/bin/sh
# Builds the GPU runtime, its tests and the fake driver with a sanitizer, and runs
# the tests: tools/sanitize-gpu-runtime.sh thread|address [FOLDER]. Needs clang++
# only: neither LLVM's libraries nor a build of the project.
set -eu

sanitizer=${1:?expected thread or address}
root=$(cd "$(dirname "$0")/.." && pwd)
out=${2:-$root/build/sanitize-$sanitizer}
compiler=${CXX:-clang++-22}
mkdir -p "$out"

flags="-std=c++17 -O1 -g -fPIC -pthread -I$root/include -fsanitize=$sanitizer"
test=$root/test/Runtime
# shellcheck disable=SC2086 # the flags are words
$compiler $flags -shared -Wl,-soname,libcuda.so.1 "$test"/Inputs/FakeCUDA/*.cpp \
  -o "$out/libcuda.so.1"
# shellcheck disable=SC2086
$compiler $flags "$test/cuda.cpp" "$test"/Inputs/*.cpp \
  "$root"/lib/Runtime/GPU/CUDA*.cpp "$root/lib/Runtime/GPU/Host.cpp" \
  "$root/lib/Runtime/GPU/MGPU.cpp" "$root/lib/Runtime/GPU/Memory.cpp" \
  "$root/lib/Runtime/GPU/Modules.cpp" "$root/lib/Runtime/GPU/Status.cpp" \
  "$root/lib/Runtime/Error.cpp" "$root/lib/Runtime/Extents.cpp" \
  -o "$out/varlen-cuda-test" -ldl
TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1" \
ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=1" \
LD_LIBRARY_PATH=$out "$out/varlen-cuda-test"
