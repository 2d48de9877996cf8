#!/bin/sh
# Builds the GPU runtime, its tests and the fake driver with a sanitizer, and runs the
# tests: tools/sanitize-gpu-runtime.sh thread|address [FOLDER [BUILD]]. Needs clang++ only:
# neither LLVM's libraries nor a build of the project. With a BUILD that links LLVM's shared
# libraries, the launchers of libvarlen-c, too; what else they are made of comes from there.
set -eu

sanitizer=${1:?expected thread or address}
root=$(cd "$(dirname "$0")/.." && pwd)
out=${2:-$root/build/sanitize-$sanitizer}
build=${3-}
compiler=${CXX:-clang++-22}
mkdir -p "$out"

# Undefined behaviour goes with addresses. The driver's functions are called by types of our
# own, which the check of functions does not know.
kinds=$sanitizer
if [ "$sanitizer" = address ]; then
  kinds=address,undefined
fi
flags="-std=c++17 -O1 -g -fPIC -pthread -I$root/include -fsanitize=$kinds"
flags="$flags -fno-sanitize=function -fno-sanitize-recover=all"
test=$root/test/Runtime
export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1"
export ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=1"

# shellcheck disable=SC2086 # the flags are words
$compiler $flags -shared -Wl,-soname,libcuda.so.1 "$test"/Inputs/FakeCUDA/*.cpp \
  -o "$out/libcuda.so.1"
runtime=
for source in "$root"/lib/Runtime/GPU/CUDA*.cpp "$root"/lib/Runtime/GPU/Host.cpp \
  "$root"/lib/Runtime/GPU/MGPU.cpp "$root"/lib/Runtime/GPU/Memory.cpp \
  "$root"/lib/Runtime/GPU/Modules.cpp "$root"/lib/Runtime/GPU/Status.cpp \
  "$root"/lib/Runtime/Error.cpp "$root"/lib/Runtime/Extents.cpp; do
  object=$out/$(basename "$source" .cpp).o
  # shellcheck disable=SC2086
  $compiler $flags -c "$source" -o "$object"
  runtime="$runtime $object"
done
# shellcheck disable=SC2086
$compiler $flags "$test/cuda.cpp" "$test"/Inputs/*.cpp $runtime \
  -o "$out/varlen-cuda-test" -ldl
LD_LIBRARY_PATH=$out "$out/varlen-cuda-test"

if [ -z "$build" ]; then
  exit 0
fi
llvm=$(sed -n 's,^MLIR_DIR:.*=\(.*\)/lib/cmake/mlir$,\1,p' "$build/CMakeCache.txt")
objects=$build/lib/CAPI/CMakeFiles/VarlenCAPI.dir
launcher=
others=
for source in "$root"/lib/CAPI/*.cpp; do
  name=$(basename "$source" .cpp)
  case $name in
  # What a launch runs.
  Binding | Launcher | LaunchRun)
    # shellcheck disable=SC2086
    $compiler $flags -fno-exceptions -isystem "$llvm/include" -I"$build/include" \
      -include "$root/cmake/MatchLLVM.h" -c "$source" -o "$out/$name.o"
    launcher="$launcher $out/$name.o"
    ;;
  *) others="$others $objects/$name.cpp.o" ;;
  esac
done
# shellcheck disable=SC2086
$compiler $flags "$test/launcher.cpp" $launcher $runtime $others -Wl,--start-group \
  "$build"/lib/libVarlen*.a -Wl,--end-group -L"$llvm/lib" -lMLIR -lLLVM \
  -Wl,-rpath,"$llvm/lib" -fuse-ld=lld -o "$out/varlen-launcher-test" -ldl
LD_LIBRARY_PATH=$out "$out/varlen-launcher-test"
