// RUN: varlen-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: varlen-opt --help | FileCheck %s --check-prefix=PASSES

// DIALECTS: varlen{{$|,}}

// PASSES: --varlen-online-softmax
// PASSES: --varlen-to-cpu
