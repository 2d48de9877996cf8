#!/bin/sh
# Writes the reference pages, which TableGen makes from the definitions, to a
# folder.
#
#   tools/gen-docs.sh FOLDER
set -eu
folder=${1:?wanted a folder to write to}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$folder"

# page PAGE DEFINITIONS GENERATOR...
page() {
  out=$folder/$1
  definitions=$root/$2
  shift 2
  mlir-tblgen "$@" -I "$root/include" -I "$(llvm-config --includedir)" "$definitions" |
    sed '/^\[TOC\]$/d' >"$out"
}

page VarlenDialect.md include/varlen/Dialect/Varlen/IR/VarlenOps.td -gen-dialect-doc -dialect=varlen
page LinalgPasses.md include/varlen/Linalg/Transforms/Passes.td -gen-pass-doc
page VarlenPasses.md include/varlen/Dialect/Varlen/Transforms/Passes.td -gen-pass-doc
page KernelDialect.md include/varlen/Dialect/Kernel/IR/KernelMemoryOps.td -gen-dialect-doc -dialect=kernel
page KernelPasses.md include/varlen/Dialect/Kernel/Transforms/Passes.td -gen-pass-doc
page ConversionPasses.md include/varlen/Conversion/Passes.td -gen-pass-doc
page ImportPasses.md include/varlen/Import/Passes.td -gen-pass-doc
page ABIPasses.md include/varlen/ABI/Passes.td -gen-pass-doc
page CPUPasses.md include/varlen/Target/CPU/Passes.td -gen-pass-doc
page NVVMPasses.md include/varlen/Target/NVVM/Passes.td -gen-pass-doc
page ExecutorPasses.md executor/include/varlen/Executor/Passes.td -gen-pass-doc
page PipelinePasses.md include/varlen/Pipelines/Passes.td -gen-pass-doc
