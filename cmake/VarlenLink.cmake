# varlen_link_mlir(<target>): links LLVM and MLIR as VARLEN_LINK says.
function(varlen_link_mlir target)
  target_link_libraries(${target} PRIVATE MLIR LLVM)
endfunction()
