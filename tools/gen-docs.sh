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
  definitions=$root/include/varlen/$2
  shift 2
  mlir-tblgen "$@" -I "$root/include" -I "$(llvm-config --includedir)" "$definitions" |
    sed '/^\[TOC\]$/d' >"$out"
}

page VarlenDialect.md Dialect/Varlen/IR/VarlenOps.td -gen-dialect-doc -dialect=varlen
page LinalgPasses.md Dialect/Linalg/Transforms/Passes.td -gen-pass-doc
page VarlenPasses.md Dialect/Varlen/Transforms/Passes.td -gen-pass-doc
page KernelDialect.md Dialect/Kernel/IR/KernelMemoryOps.td -gen-dialect-doc -dialect=kernel
page KernelPasses.md Dialect/Kernel/Transforms/Passes.td -gen-pass-doc
page ConversionPasses.md Conversion/Passes.td -gen-pass-doc
page PipelinePasses.md Pipelines/Passes.td -gen-pass-doc
