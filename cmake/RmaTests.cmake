# SPDX-License-Identifier: Apache-2.0
# How tests are registered. A program that exits with 77 is reported as skipped.
#
#   rma_add_test(NAME n SOURCES s... [RANKS r...] [ARGS a...] [ENV VAR=VALUE...] [LABELS l...] [TIMEOUT seconds]
#                [LIBRARIES l...] [OPTIMIZED])
#     A Catch2 program. Without RANKS it is one test, n; with RANKS 1 2 4 it is the tests n.r1, n.r2 and n.r4, each
#     started by rmarun. May include internal headers ("sync/fence.hpp") and "tests/..." ones by their path below
#     tests/. RMARUN_PATH is the launcher, for tests that start jobs themselves. OPTIMIZED, with RMA_BUILD_QUICKLY,
#     too: a test whose own code has much to do.
#
#   rma_add_program_test(NAME n TARGET t [RANKS r...] [ARGS a...] [MATCH regex...] [EXPECT file [SORTED]]
#                        [ENV VAR=VALUE...] [LABELS l...] [TIMEOUT seconds]
#                        [PROCESSORS p] [LAUNCHER rma-sim] [OPTIONS o...] [STATUS n])
#     An example or benchmark under rmarun, or in the simulator (RANKS 1 if none is given), with that one's OPTIONS. It
#     must exit with 0, or STATUS; each MATCH must be found in what it prints; EXPECT is its exact standard output,
#     compared line by line after sorting where SORTED is given.
#     PROCESSORS is how many it keeps busy, if not one for each rank.
#     Without RMA_BUILD_TESTS it does nothing.

set(_rma_test_options RANKS ARGS ENV LABELS)

# Sets in the caller: timeout (of the test) and timeout_job (of what it starts, a little less, so that the launcher
# and not ctest ends a job that hangs, and says which ranks were left).
macro(_rma_test_timeouts seconds)
  set(timeout ${seconds})
  if(NOT timeout)
    set(timeout 60)
  endif()
  math(EXPR timeout "${timeout} * ${RMA_TEST_TIMEOUT_FACTOR}")
  math(EXPR timeout_job "${timeout} - ${timeout} / 10 - 1")
endmacro()

function(rma_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "OPTIMIZED" "NAME;TIMEOUT" "SOURCES;LIBRARIES;${_rma_test_options}")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rma_add_test: NAME and SOURCES are needed; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  _rma_test_timeouts("${arg_TIMEOUT}")

  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${rma_SOURCE_DIR}/src ${rma_SOURCE_DIR}/tests)
  target_link_libraries(${arg_NAME} PRIVATE
    rma::rma rma_test_main rma_warnings Boost::headers fmt::fmt Threads::Threads ${arg_LIBRARIES})
  set_target_properties(${arg_NAME} PROPERTIES CXX_EXTENSIONS OFF)
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD OFF)  # they share few headers that are not precompiled
  if(RMA_BUILD_QUICKLY AND NOT arg_OPTIMIZED)  # in half the time; the library is what is to be watched
    target_compile_options(${arg_NAME} PRIVATE -O0)
    target_precompile_headers(${arg_NAME} REUSE_FROM rma_test_headers)
  endif()
  if(TARGET rmarun)
    target_compile_definitions(${arg_NAME} PRIVATE RMARUN_PATH="$<TARGET_FILE:rmarun>")
    add_dependencies(${arg_NAME} rmarun)
  endif()

  if(NOT arg_RANKS)
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS})
    _rma_test_properties(${arg_NAME} 1)
    return()
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    add_test(NAME ${arg_NAME}.r${ranks}
      COMMAND rmarun -n ${ranks} --timeout ${timeout_job} $<TARGET_FILE:${arg_NAME}> ${arg_ARGS})
    _rma_test_properties(${arg_NAME}.r${ranks} ${ranks})
  endforeach()
endfunction()

function(rma_add_program_test)
  if(NOT RMA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 0 arg "SORTED" "NAME;TARGET;EXPECT;STATUS;TIMEOUT;LAUNCHER;PROCESSORS"
    "MATCH;OPTIONS;${_rma_test_options}")
  if(NOT arg_NAME OR NOT arg_TARGET OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rma_add_program_test: NAME and TARGET are needed; "
      "not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  _rma_test_timeouts("${arg_TIMEOUT}")
  if(NOT arg_RANKS)
    set(arg_RANKS 1)
  endif()
  set(checks "")
  set(index 0)
  foreach(regex IN LISTS arg_MATCH)
    list(APPEND checks "-DMATCH_${index}=${regex}")
    math(EXPR index "${index} + 1")
  endforeach()
  if(arg_STATUS)
    list(APPEND checks -DSTATUS=${arg_STATUS})
  endif()
  if(arg_EXPECT)
    cmake_path(ABSOLUTE_PATH arg_EXPECT)
    list(APPEND checks -DEXPECT=${arg_EXPECT} -DSORTED=${arg_SORTED})
  endif()

  foreach(ranks IN LISTS arg_RANKS)
    set(launch rmarun -n ${ranks} --timeout ${timeout_job} ${arg_OPTIONS})
    set(processors ${ranks})
    if(arg_LAUNCHER STREQUAL "rma-sim")
      set(launch rma-sim -n ${ranks} ${arg_OPTIONS})
      set(processors 1)
    endif()
    if(arg_PROCESSORS)
      set(processors ${arg_PROCESSORS})
    endif()
    list(POP_FRONT launch launcher)
    set(name ${arg_NAME})
    list(LENGTH arg_RANKS variants)
    if(variants GREATER 1)
      set(name ${arg_NAME}.r${ranks})
    endif()
    add_test(NAME ${name}
      COMMAND ${CMAKE_COMMAND} ${checks} -P ${rma_SOURCE_DIR}/cmake/RunProgram.cmake --
        $<TARGET_FILE:${launcher}> ${launch} $<TARGET_FILE:${arg_TARGET}> ${arg_ARGS})
    _rma_test_properties(${name} ${processors})
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "RunProgram: the program skipped itself")
  endforeach()
endfunction()

# Uses the caller's arg_LABELS, arg_ENV and timeout.
function(_rma_test_properties name ranks)
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${timeout} PROCESSORS ${ranks} SKIP_RETURN_CODE 77 LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENV}")
endfunction()
