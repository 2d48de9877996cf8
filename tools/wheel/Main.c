/*===- Main.c - A tool whose code is in the library --------------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

int TOOL_MAIN(int argc, char **argv);

int main(int argc, char **argv) { return TOOL_MAIN(argc, argv); }
