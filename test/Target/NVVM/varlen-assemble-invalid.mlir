// RUN: not varlen-opt %s --varlen-assemble="toolkit=/nowhere" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected ptxas in /nowhere/bin, found none; PTX needs no tool

gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = ".version 7.0\0A.target sm_80\0A.address_size 64\0A.visible .entry broken() { no such instruction; }\0A">]
