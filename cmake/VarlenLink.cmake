# varlen_link_mlir(<target>): links LLVM and MLIR as VARLEN_LINK says.
#
# Debian builds LLVM as one shared library, and every exported target of a
# static MLIR library names that shared library among what it needs. Linked as
# they are, the static targets give a program with two copies of LLVM. So the
# static link takes the archives as files and lets the linker pick the members.
function(varlen_link_mlir target)
  if(VARLEN_LINK STREQUAL "dylib")
    target_link_libraries(${target} PRIVATE MLIR LLVM)
    # Debian's MLIR is not where the loader looks.
    set_target_properties(${target} PROPERTIES INSTALL_RPATH ${LLVM_LIBRARY_DIR})
    return()
  endif()
  get_property(mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
  foreach(library IN LISTS mlir LLVM_AVAILABLE_LIBS)
    # Debian leaves a few exported libraries out of its packages.
    if(TARGET ${library})
      get_target_property(type ${library} TYPE)
      get_target_property(file ${library} LOCATION)
      if(type STREQUAL "STATIC_LIBRARY" AND EXISTS ${file})
        list(APPEND archives ${file})
      endif()
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE
    -Wl,--start-group ${archives} -Wl,--end-group
    -Wl,-Bstatic -lzstd -lz -Wl,-Bdynamic)
  target_link_options(${target} PRIVATE
    -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,-O1 -Wl,--strip-all)
endfunction()
