# What others build against: find_package(Varlen) after an installation, or
# add_subdirectory. Both have the targets Varlen::InitAll, Varlen::Runtime, ...

set(VARLEN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Varlen)

# varlen_export(<library> [<X>]): VarlenX is Varlen::X to others, or this X.
function(varlen_export name)
  string(REGEX REPLACE "^Varlen" "" export_name ${name})
  if(ARGC GREATER 1)
    set(export_name ${ARGV1})
  endif()
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${export_name})
  add_library(Varlen::${export_name} ALIAS ${name})
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/executor/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/executor/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${name} EXPORT VarlenTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# Headers, .td files, and what find_package reads.
function(varlen_install_package)
  include(CMakePackageConfigHelpers)
  file(RELATIVE_PATH VARLEN_PREFIX_OF_PKGCONFIG
    /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" VARLEN_PREFIX_OF_PKGCONFIG ${VARLEN_PREFIX_OF_PKGCONFIG})
  get_property(VARLEN_MLIR_LIBRARIES GLOBAL PROPERTY VARLEN_MLIR_LIBRARIES)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/varlen ${PROJECT_SOURCE_DIR}/include/varlen-c
    ${PROJECT_SOURCE_DIR}/executor/include/varlen
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
  install(DIRECTORY ${PROJECT_BINARY_DIR}/include/varlen ${PROJECT_BINARY_DIR}/executor/include/varlen
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
  # For programs of the C interface that are built by other means.
  configure_file(${PROJECT_SOURCE_DIR}/cmake/varlen-c.pc.in
    ${PROJECT_BINARY_DIR}/varlen-c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/varlen-c.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(EXPORT VarlenTargets NAMESPACE Varlen:: DESTINATION ${VARLEN_PACKAGE_DIR})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/VarlenConfig.cmake.in
    ${PROJECT_BINARY_DIR}/VarlenConfig.cmake INSTALL_DESTINATION ${VARLEN_PACKAGE_DIR}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
  # Until 1.0 nothing is promised from one minor version to the next.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/VarlenConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/VarlenConfig.cmake
    ${PROJECT_BINARY_DIR}/VarlenConfigVersion.cmake DESTINATION ${VARLEN_PACKAGE_DIR})
endfunction()
