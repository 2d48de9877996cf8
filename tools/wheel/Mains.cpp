//===- Mains.cpp - The tools as functions of the library ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// `main` of each tool, which is compiled under another name here.
int varlen_lsp_server_main(int argc, char **argv);
int varlen_opt_main(int argc, char **argv);
int varlen_run_main(int argc, char **argv);

extern "C" {
[[gnu::visibility("default")]] int varlen_lsp_server_tool(int argc,
                                                          char **argv) {
  return varlen_lsp_server_main(argc, argv);
}
[[gnu::visibility("default")]] int varlen_opt_tool(int argc, char **argv) {
  return varlen_opt_main(argc, argv);
}
[[gnu::visibility("default")]] int varlen_run_tool(int argc, char **argv) {
  return varlen_run_main(argc, argv);
}
}
