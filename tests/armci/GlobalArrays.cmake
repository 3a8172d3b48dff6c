# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)
find_path(RMA_GA_INCLUDE ga.h PATHS /usr/include NO_DEFAULT_PATH)

# rma_find_ga(MPI result): what a program with Global Arrays is linked with besides an ARMCI; empty where something is
# not there, and `reason` says what.
function(rma_find_ga mpi result reason)
  set(found "")
  set(missing "")
  foreach(library IN ITEMS ga-${mpi} scalapack-${mpi} lapack blas)
    find_library(RMA_LIB_${library} ${library})
    if(NOT RMA_LIB_${library})
      list(APPEND missing lib${library})
    endif()
    list(APPEND found ${RMA_LIB_${library}})
  endforeach()
  find_library(RMA_LIB_armci-${mpi} armci-${mpi})
  find_library(RMA_LIB_gfortran gfortran PATHS /usr/lib/gcc/${CMAKE_LIBRARY_ARCHITECTURE}
    PATH_SUFFIXES ${CMAKE_C_COMPILER_VERSION} 12 13 14)
  if(NOT RMA_LIB_gfortran)
    list(APPEND missing libgfortran)
  endif()
  if(NOT RMA_GA_INCLUDE)
    list(APPEND missing ga.h)
  endif()
  if(NOT TARGET rma_armci_${mpi}_static OR NOT RMA_MPIRUN_${mpi})
    list(APPEND missing ${mpi})
  endif()
  list(JOIN missing " " missing)
  set(${result} "${found};${RMA_LIB_gfortran};m" PARENT_SCOPE)
  set(${reason} "${missing}" PARENT_SCOPE)
endfunction()

# rma_add_ga_test(NAME n SOURCES s...): the same output with both, also on virtual nodes. All numbers of ranks are for
# long runs.
function(rma_add_ga_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES")
  foreach(mpi IN ITEMS openmpi mpich)
    rma_find_ga(${mpi} libraries missing)
    if(NOT missing STREQUAL "")
      add_test(NAME ga.${arg_NAME}.${mpi} COMMAND ${CMAKE_COMMAND} -E echo "skipped: not there: ${missing}")
      set_tests_properties(ga.${arg_NAME}.${mpi} PROPERTIES LABELS "ga;not-asan;not-tsan"
        SKIP_REGULAR_EXPRESSION "skipped: ")
      continue()
    endif()
    set(name ga_${arg_NAME}_${mpi})
    add_library(${name}_objects OBJECT ${arg_SOURCES})
    target_link_libraries(${name}_objects PRIVATE PkgConfig::rma_${mpi})
    add_executable(${name} $<TARGET_OBJECTS:${name}_objects>)
    target_link_libraries(${name} PRIVATE ${RMA_LIB_ga-${mpi}} rma_armci_${mpi}_static ${libraries})
    add_executable(${name}_debian $<TARGET_OBJECTS:${name}_objects>)
    target_link_libraries(${name}_debian PRIVATE
      ${RMA_LIB_ga-${mpi}} ${RMA_LIB_armci-${mpi}} PkgConfig::rma_${mpi} ${libraries})
    set_target_properties(${name} ${name}_debian PROPERTIES LINKER_LANGUAGE CXX)
    foreach(variant IN ITEMS 1x1 2x1 4x2)
      _rma_add_ga_run(${arg_NAME} ${mpi} ${variant} "")
    endforeach()
    foreach(variant IN ITEMS 3x1 4x1 8x1 2x2 4x4 8x2)
      _rma_add_ga_run(${arg_NAME} ${mpi} ${variant} long)
    endforeach()
  endforeach()
endfunction()

# `variant`: ranks x virtual nodes
function(_rma_add_ga_run program mpi variant labels)
  string(REPLACE "x" ";" parts ${variant})
  list(GET parts 0 ranks)
  list(GET parts 1 nodes)
  set(name ga.${program}.${mpi}.${variant})
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/same_output.py
    --launcher ${RMA_MPIRUN_${mpi}} --ranks ${ranks} --nodes ${nodes} $<TARGET_FILE:ga_${program}_${mpi}>
    $<TARGET_FILE:ga_${program}_${mpi}_debian>)
  set_tests_properties(${name} PROPERTIES PROCESSORS ${ranks} TIMEOUT 220 LABELS "ga;${labels};not-asan;not-tsan")
endfunction()
