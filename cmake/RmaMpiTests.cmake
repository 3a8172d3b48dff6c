# SPDX-License-Identifier: Apache-2.0
# Programs of MPI, compiled once for each MPI, run by that MPI alone and with its windows taken over: both must print
# what the programs expect. Open MPI's osc/rdma component is left out, since Debian's crashes in them, and long messages
# are not read out of their sender's memory, so that they need its progress.
set(rma_mpi_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_osc=^rdma OMPI_MCA_btl_vader_single_copy_mechanism=none RMA_MPI_EXPLAIN=1)

# What cannot run is a test that is skipped and says why.
function(_rma_skip_mpi_tests name why)
  add_test(NAME mpi.${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${why}")
  set_tests_properties(mpi.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped" LABELS mpi)
endfunction()

set(rma_mpis "")
foreach(mpi IN ITEMS openmpi mpich)
  find_program(RMA_MPIRUN_${mpi} NAMES mpirun.${mpi})
  if(TARGET rma_mpi_${mpi} AND RMA_MPIRUN_${mpi})
    list(APPEND rma_mpis ${mpi})
  endif()
endforeach()

# rma_add_mpi_program(name source [LINKED]): mpi_<name>_<mpi>, by the MPI's own compilers. LINKED: with our library
# before the MPI's, so that it need not be preloaded.
function(rma_add_mpi_program name source)
  cmake_path(GET source EXTENSION LAST_ONLY kind)
  set(compiler mpicc)
  if(kind STREQUAL ".f90")
    set(compiler mpifort)
  endif()
  foreach(mpi IN LISTS rma_mpis)
    find_program(RMA_${compiler}_${mpi} NAMES ${compiler}.${mpi})
    if(NOT RMA_${compiler}_${mpi})
      _rma_skip_mpi_tests(${name}.${mpi} "no ${compiler}.${mpi}")
      continue()
    endif()
    set(target mpi_${name}_${mpi})
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${target})
    set(library "")
    if("LINKED" IN_LIST ARGN)
      set(library $<TARGET_FILE:rma_mpi_${mpi}> -Wl,-rpath,$<TARGET_FILE_DIR:rma_mpi_${mpi}>)
    endif()
    add_custom_command(OUTPUT ${made} DEPENDS ${source} VERBATIM COMMAND_EXPAND_LISTS
      COMMAND ${RMA_${compiler}_${mpi}} -O1 -g ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${library} -o ${made}
        -lm -lpthread)
    add_custom_target(${target}_program ALL DEPENDS ${made})
  endforeach()
endfunction()

# rma_add_mpi_window_test(NAME n RANKS r... [NODES k] [ALONE r...] [ARGS a...] [MATCH regex...] [LABELS l...]
# [TIMEOUT seconds] [SUFFIX s] [LEFT n WHY regex]): mpi.<n>.<mpi>.r<r><s>, the program of that name with its windows
# taken over; with NODES on so many virtual nodes. ALONE: by that MPI alone, on so many ranks. MATCH: what it prints,
# instead of "<n>: 0 wrong". LEFT: so many of its windows are left to MPI, instead of none; WHY: what is said of them.
function(rma_add_mpi_window_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;NODES;TIMEOUT;SUFFIX;LEFT;WHY" "RANKS;ALONE;ARGS;MATCH;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_LEFT)
    set(arg_LEFT 0)
  endif()
  if(NOT arg_MATCH)
    set(arg_MATCH "${arg_NAME}: ([0-9]+ types, )?0 wrong")
  endif()
  foreach(mpi IN LISTS rma_mpis)
    if(NOT TARGET mpi_${arg_NAME}_${mpi}_program)
      continue()
    endif()
    set(starter $<TARGET_FILE_DIR:rma_mpi_${mpi}>/rma-mpi)
    set(suffix "${arg_SUFFIX}")
    if(arg_NODES)
      set(starter ${rma_SOURCE_DIR}/tests/armci/on_nodes.sh ${arg_NODES} ${starter})
      set(suffix .nodes${arg_SUFFIX})
    endif()
    foreach(ranks IN LISTS arg_RANKS)
      _rma_add_mpi_run(mpi.${arg_NAME}.${mpi}.r${ranks}${suffix}
        "[1-9][0-9]* windows taken over, ${arg_LEFT} left to MPI" ${arg_WHY})
    endforeach()
    set(starter "")
    foreach(ranks IN LISTS arg_ALONE)
      _rma_add_mpi_run(mpi.${arg_NAME}.${mpi}.r${ranks}.alone)
    endforeach()
  endforeach()
endfunction()

# _rma_add_mpi_run(test [regex...]): of rma_add_mpi_window_test, whose variables it reads.
function(_rma_add_mpi_run test)
  set(checks "")
  foreach(regex IN LISTS arg_MATCH ARGN)
    list(LENGTH checks index)
    list(APPEND checks "-DMATCH_${index}=${regex}")
  endforeach()
  add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} ${checks} -P ${rma_SOURCE_DIR}/cmake/RunProgram.cmake --
    ${RMA_MPIRUN_${mpi}} -n ${ranks} ${starter} ${CMAKE_CURRENT_BINARY_DIR}/mpi_${arg_NAME}_${mpi} ${arg_ARGS})
  set_tests_properties(${test} PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${ranks}
    LABELS "mpi;not-asan;not-tsan;${arg_LABELS}" SKIP_REGULAR_EXPRESSION "RunProgram: the program skipped itself"
    ENVIRONMENT "${rma_mpi_environment}")
endfunction()
