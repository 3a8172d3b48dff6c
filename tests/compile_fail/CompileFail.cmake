# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=c++ -DINCLUDE=dir -DSOURCE=x.cpp -P CompileFail.cmake   (see CMakeLists.txt)
set(compile ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE})

file(STRINGS ${SOURCE} expected REGEX "^// expected-error: ")
if(NOT expected)
  message(FATAL_ERROR "${SOURCE} has no line '// expected-error: <regular expression>'")
endif()

execute_process(COMMAND ${compile} ${SOURCE} RESULT_VARIABLE result ERROR_VARIABLE text)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "does not compile even without RMA_COMPILE_FAIL:\n${text}")
endif()

execute_process(COMMAND ${compile} -DRMA_COMPILE_FAIL ${SOURCE} RESULT_VARIABLE result ERROR_VARIABLE text)
if(result EQUAL 0)
  message(FATAL_ERROR "compiles, but must not")
endif()
foreach(line IN LISTS expected)
  string(REGEX REPLACE "^// expected-error: " "" regex "${line}")
  if(NOT text MATCHES "${regex}")
    message(FATAL_ERROR "refused, but the message does not match '${regex}':\n${text}")
  endif()
endforeach()
