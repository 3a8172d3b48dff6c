# SPDX-License-Identifier: Apache-2.0

# rma_install(...): `install`, where the project that this is part of wants rma installed, too.
function(rma_install)
  if(RMA_INSTALL)
    install(${ARGN})
  endif()
endfunction()

# rma_add_tool(NAME n SOURCES s... [LIBRARIES l...]): a program that is installed. It may include the library's
# internal headers, fmt and CLI11; hwloc is PkgConfig::hwloc. It finds a shared library from where both are installed.
function(rma_add_tool)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBRARIES")
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${rma_SOURCE_DIR}/src)
  target_link_libraries(${arg_NAME} PRIVATE
    rma::rma rma_warnings fmt::fmt CLI11::CLI11 Threads::Threads ${arg_LIBRARIES})
  set_target_properties(${arg_NAME} PROPERTIES CXX_EXTENSIONS OFF)
  get_target_property(library_type rma TYPE)
  if(library_type STREQUAL SHARED_LIBRARY)
    file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(${arg_NAME} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  endif()
  rma_install(TARGETS ${arg_NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# rma_compile_quickly(FILE...): sources that run once, and whose headers (CLI11, Catch2) take long to optimize.
function(rma_compile_quickly)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O0 SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# rma_precompile(TARGET [HEADER...]): for a target of many sources, what most of them include anyway. A build without
# RMA_BUILD_QUICKLY shows what a source forgot to include.
function(rma_precompile target)
  if(RMA_BUILD_QUICKLY)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <deque> <functional> <map> <memory> <mutex> <span>
      <string> <string_view> <unordered_map> <vector> <fmt/format.h> ${ARGN})
  endif()
endfunction()

# rma_unite_folders(TARGET APART regex): with RMA_BUILD_QUICKLY a folder's sources are compiled as one, but for those
# that tests compile themselves, in another way: they must stay objects of their own.
function(rma_unite_folders target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "APART" "")
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "${arg_APART}")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# rma_position_independent(TARGET): its objects can be part of a shared library, and are as fast as without: what is
# compiled together stays together.
function(rma_position_independent target)
  target_compile_options(${target} PRIVATE -fPIC -fno-semantic-interposition)
endfunction()

# rma_add_program(NAME n SOURCES s... [LIBRARIES l...]): an example or a benchmark. It sees the public API only
# (and fmt) and is not installed. It is a module for rma-sim, too (rmaModules.cmake).
function(rma_add_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBRARIES")
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE rma::rma rma_warnings fmt::fmt Threads::Threads ${arg_LIBRARIES})
  set_target_properties(${arg_NAME} PROPERTIES CXX_EXTENSIONS OFF)
  rma_add_module(${arg_NAME})
endfunction()
