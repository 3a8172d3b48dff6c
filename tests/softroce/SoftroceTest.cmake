# SPDX-License-Identifier: Apache-2.0
# rma_add_softroce_test(NAME n HOSTS h COMMAND word... [USER name] [MEMLOCK KiB] [CPUS c] [MEMORY MiB]
#                       [ENV VAR=VALUE...] [LABELS l...] [TIMEOUT seconds] [SANITIZED] [ALONE])
#   A command that runs on h virtual hosts with software RoCE (tests/softroce), as the test n with the label `softroce`;
#   480 seconds unless TIMEOUT says otherwise. A machine that cannot run the hosts skips it and says why; so does a
#   command that exits with 77 on the first host that does not exit with 0. On two processors two of one host each run
#   at once, since a host without KVM keeps little more than one busy; one that measures time is ALONE.
#   With sanitizers only those that are SANITIZED run.
function(rma_add_softroce_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SANITIZED;ALONE" "NAME;HOSTS;USER;MEMLOCK;CPUS;MEMORY;TIMEOUT"
    "COMMAND;ENV;LABELS")
  if(NOT arg_NAME OR NOT arg_HOSTS OR NOT arg_COMMAND OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rma_add_softroce_test: NAME, HOSTS and COMMAND are needed; "
      "not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 480)
  endif()
  _rma_test_timeouts(${arg_TIMEOUT})
  set(options --hosts ${arg_HOSTS} --timeout ${timeout_job} --skip)
  foreach(option IN ITEMS USER MEMLOCK CPUS MEMORY)
    if(DEFINED arg_${option})
      string(TOLOWER --${option} name)
      list(APPEND options ${name} ${arg_${option}})
    endif()
  endforeach()
  set(labels softroce ${arg_LABELS})
  if(NOT arg_SANITIZED)
    list(APPEND labels not-asan not-tsan)
  endif()
  set(processors 1)
  if(arg_ALONE OR arg_HOSTS GREATER 1)
    set(processors 2)
  endif()
  add_test(NAME ${arg_NAME}
    COMMAND Python3::Interpreter ${rma_SOURCE_DIR}/tests/softroce/softroce ${options} -- ${arg_COMMAND})
  set_tests_properties(${arg_NAME} PROPERTIES
    TIMEOUT ${timeout} PROCESSORS ${processors} SKIP_RETURN_CODE 77
    LABELS "${labels}" ENVIRONMENT "${arg_ENV}")
endfunction()
