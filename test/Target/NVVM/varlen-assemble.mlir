// REQUIRES: ptxas
// RUN: varlen-opt %s --varlen-assemble="report" 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK <%t.remarks
// RUN: varlen-opt %s --varlen-assemble="fatbin" | FileCheck %s --check-prefix=FAT

// REMARK: remark: nothing uses {{[0-9]+}} registers
// An ELF file.
// CHECK: gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, bin = "\7FELF
// Fat binaries are the format that is not named.
// FAT: gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, "P\EDU\BA
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = ".version 7.0\0A.target sm_80\0A.address_size 64\0A.visible .entry nothing() { ret; }\0A">]
