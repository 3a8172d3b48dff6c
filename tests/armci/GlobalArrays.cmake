# SPDX-License-Identifier: Apache-2.0
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

# rma_add_ga_test(NAME n SOURCES s... RANKS r... NODES k...): the same output with both, and on virtual nodes.
function(rma_add_ga_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;RANKS;LABELS")
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
    set(run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/same_output.py --launcher ${RMA_MPIRUN_${mpi}})
    foreach(ranks IN LISTS arg_RANKS)
      add_test(NAME ga.${arg_NAME}.${mpi}.r${ranks} COMMAND ${run} --ranks ${ranks} $<TARGET_FILE:${name}>
        $<TARGET_FILE:${name}_debian>)
      set_tests_properties(ga.${arg_NAME}.${mpi}.r${ranks} PROPERTIES PROCESSORS ${ranks} TIMEOUT 120
        LABELS "ga;${arg_LABELS};not-asan;not-tsan")
      if(ranks GREATER 1)
        add_test(NAME ga.${arg_NAME}.${mpi}.nodes.r${ranks} COMMAND ${run} --ranks ${ranks} --nodes 2
          $<TARGET_FILE:${name}> $<TARGET_FILE:${name}_debian>)
        set_tests_properties(ga.${arg_NAME}.${mpi}.nodes.r${ranks} PROPERTIES PROCESSORS ${ranks} TIMEOUT 120
          LABELS "ga;${arg_LABELS};not-asan;not-tsan")
      endif()
    endforeach()
  endforeach()
endfunction()

rma_add_ga_test(NAME arrays SOURCES arrays.c RANKS 1 2 4)
