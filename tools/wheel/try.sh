#!/bin/bash
# Tries the package that is installed in FOLDER/venv, with no LLVM and no checkout in
# reach: its tests start from here, but import what is installed.
#
#   tools/wheel/try.sh FOLDER [numpy|onnx|jax|torch]...
#
# First without any other package, then with each that is named, installed in this order
# where it is missing: those of python/requirements-*.txt. FOLDER is where tests write.
set -euo pipefail
folder=$(cd "${1:?wanted a folder with an environment}" && pwd)
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$folder/venv/bin

run() {
  (cd "$folder" && env -i HOME="$folder" PATH=/nonexistent LD_LIBRARY_PATH= JAX_PLATFORMS=cpu \
    PYTHONDONTWRITEBYTECODE=1 VARLEN_CACHE_DIR="$folder/cache" "$@")
}
# run_test TEST ARGUMENT...: with the modules beside the tests.
run_test() {
  run PYTHONPATH="$root/test/Python/Inputs:$root/test/PyTorch/Inputs" "$bin/python" "$root/test/$1" \
    "${@:2}"
}

run "$bin/python" "$root/tools/wheel/without-numpy.py"
run "$bin/varlen-opt" "$root/examples/packed.mlir" --varlen-to-cpu -o lowered.mlir
grep -q llvm.func "$folder/lowered.mlir"
run "$bin/varlen-run" "$root/examples/packed.mlir" --entry=bf16_causal --random=0 \
  --lengths=130,0,1,57 --threads=2 -o out.safetensors >/dev/null

for package in "$@"; do
  case $package in
  numpy)
    # Not all that the tests need: what the package itself wants beside it.
    grep -E '^(numpy|ml_dtypes|safetensors)==' "$root/python/requirements-test.txt" \
      >"$folder/requirements-numpy.txt"
    "$root/tools/venv.sh" "$folder" "$folder/requirements-numpy.txt" >/dev/null
    for test in attn arguments compile processes dlpack; do
      run_test "Python/$test.py" "$folder/one.mlir"
    done
    run "$bin/python" -m varlen.bench --lengths=130,0,1,57 --heads=2 --causal --gradients \
      --repeat=2 --json >"$folder/bench.json"
    grep -q '"ms_median": [0-9]' "$folder/bench.json"
    ;;
  onnx)
    "$root/tools/venv.sh" "$folder" "$root/python/requirements-onnx.txt" >/dev/null
    run_test ONNX/Inputs/make-models.py .
    run "$bin/varlen-import" block.onnx -o model.mlir --weights=weights.safetensors
    run "$bin/varlen-run" model.mlir in.safetensors --weights=weights.safetensors \
      -o y.safetensors >/dev/null
    test -s "$folder/y.safetensors"
    ;;
  jax)
    "$root/tools/venv.sh" "$folder" "$root/python/requirements-jax.txt" >/dev/null
    run_test JAX/transforms.py
    run_test JAX/arrays.py
    ;;
  torch)
    "$root/tools/venv.sh" "$folder" "$root/python/requirements-torch.txt" >/dev/null
    # Those that need no compiler, which inductor calls.
    for test in loading values operators errors provider threads; do
      run_test "PyTorch/$test.py"
    done
    ;;
  *)
    echo "$0: wanted numpy, onnx, jax or torch, got '$package'" >&2
    exit 2
    ;;
  esac
done
