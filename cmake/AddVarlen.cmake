# varlen_tablegen(<td> [<output> <mlir-tblgen option>...]...): generates the
# outputs next to the header that includes them and adds them to varlen-headers.
function(varlen_tablegen td output)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${output})
  add_custom_command(OUTPUT ${out}
    COMMAND mlir-tblgen ${ARGN} -I ${MLIR_INCLUDE_DIRS} -I ${PROJECT_SOURCE_DIR}/include
            ${CMAKE_CURRENT_SOURCE_DIR}/${td} -o ${out} -d ${out}.d --write-if-changed
    DEPFILE ${out}.d
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${td}
    COMMENT "Generating ${output}")
  # A custom command is known in its own directory only, a target everywhere.
  file(RELATIVE_PATH target ${PROJECT_BINARY_DIR} ${out})
  string(MAKE_C_IDENTIFIER ${target} target)
  add_custom_target(${target} DEPENDS ${out})
  set_property(GLOBAL APPEND PROPERTY VARLEN_HEADERS ${target})
endfunction()

# varlen_precompile(<header>...): reads upstream's headers once for all targets,
# which takes three quarters of the time of a build without.
function(varlen_precompile)
  if(NOT LLVM_ENABLE_ASSERTIONS)
    list(PREPEND ARGN ${PROJECT_SOURCE_DIR}/cmake/MatchLLVM.h)
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/Precompiled.cpp "")
  add_library(VarlenPrecompiled OBJECT ${PROJECT_BINARY_DIR}/Precompiled.cpp)
  target_precompile_headers(VarlenPrecompiled PRIVATE ${ARGN})
  # So that ccache knows the file again.
  target_compile_options(VarlenPrecompiled PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
endfunction()

# What every target that includes LLVM's headers needs.
function(varlen_use_llvm name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${VARLEN_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  add_dependencies(${name} varlen-headers)
  if(TARGET VarlenPrecompiled)
    target_precompile_headers(${name} REUSE_FROM VarlenPrecompiled)
  endif()
  if(NOT LLVM_ENABLE_ASSERTIONS)
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/MatchLLVM.h>)
  endif()
endfunction()

# varlen_add_library(<name> <sources>... [LINK_LIBS <libs>...])
function(varlen_add_library name)
  cmake_parse_arguments(arg "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  varlen_use_llvm(${name})
  target_link_libraries(${name} PUBLIC ${arg_LINK_LIBS})
  # For projects that have this one as a subdirectory; find_package has its own way.
  foreach(dir IN LISTS MLIR_INCLUDE_DIRS LLVM_INCLUDE_DIRS)
    target_include_directories(${name} SYSTEM INTERFACE $<BUILD_INTERFACE:${dir}>)
  endforeach()
  varlen_export(${name})
  get_target_property(export_name ${name} EXPORT_NAME)
  set_property(GLOBAL APPEND PROPERTY VARLEN_MLIR_LIBRARIES ${export_name})
endfunction()

# The targets of a folder and of those in it that a build without a name makes.
function(varlen_collect_targets result folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  set(all)
  foreach(target ${targets})
    get_target_property(is_left_out ${target} EXCLUDE_FROM_ALL)
    get_target_property(type ${target} TYPE)
    if(NOT is_left_out AND NOT type STREQUAL "UTILITY")
      list(APPEND all ${target})
    endif()
  endforeach()
  foreach(inner ${folders})
    varlen_collect_targets(more ${inner})
    list(APPEND all ${more})
  endforeach()
  set(${result} ${all} PARENT_SCOPE)
endfunction()

# varlen_add_check(<name>): a target that builds what the tests run, and runs all of them.
function(varlen_add_check name)
  varlen_collect_targets(targets ${PROJECT_SOURCE_DIR})
  add_custom_target(${name}
    COMMAND ${PROJECT_SOURCE_DIR}/tools/run-tests.py --build ${PROJECT_BINARY_DIR}
      --lit ${LLVM_TOOLS_BINARY_DIR}/lit
    DEPENDS ${targets} USES_TERMINAL
    COMMENT "Running the tests")
endfunction()

# varlen_add_tool(<name> <sources>... [NO_INSTALL] [LINK_LIBS <libs>...])
function(varlen_add_tool name)
  cmake_parse_arguments(arg "NO_INSTALL" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  # As libraries are compiled: precompiled headers are for either -fPIC or -fPIE.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  varlen_use_llvm(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINK_LIBS})
  varlen_link_mlir(${name})
  # A static build ships tools that share what they have of LLVM.
  if(VARLEN_LINK STREQUAL "dylib" AND NOT arg_NO_INSTALL)
    install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# varlen_add_plugin(<name> <sources>... [LINK_LIBS <libs>...]): a module whose
# LLVM and MLIR symbols are those of the tool that loads it.
function(varlen_add_plugin name)
  cmake_parse_arguments(arg "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES PREFIX "")
  if(VARLEN_LINK STREQUAL "static")
    target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--strip-all)
  endif()
  varlen_use_llvm(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINK_LIBS})
  install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
