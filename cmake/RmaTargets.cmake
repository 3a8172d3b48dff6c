# SPDX-License-Identifier: Apache-2.0

# rma_add_tool(NAME n SOURCES s... [LIBRARIES l...]): a program that is installed. It may include the library's
# internal headers, fmt and CLI11; hwloc is PkgConfig::hwloc.
function(rma_add_tool)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBRARIES")
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${rma_SOURCE_DIR}/src)
  target_link_libraries(${arg_NAME} PRIVATE
    rma::rma rma_warnings fmt::fmt CLI11::CLI11 Threads::Threads ${arg_LIBRARIES})
  set_target_properties(${arg_NAME} PROPERTIES CXX_EXTENSIONS OFF)
  install(TARGETS ${arg_NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# rma_add_program(NAME n SOURCES s... [LIBRARIES l...]): an example or a benchmark. It sees the public API only
# (and fmt) and is not installed.
function(rma_add_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBRARIES")
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE
    rma::rma rma_warnings fmt::fmt Threads::Threads ${arg_LIBRARIES})
  set_target_properties(${arg_NAME} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
