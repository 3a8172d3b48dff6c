# SPDX-License-Identifier: Apache-2.0
# cmake -DSOURCE=... -DFOLDER=... -DCOMPILER=... -P subdirectory.cmake: a project that has rma as a part is made,
# without rma's rules of installation, and with them where it asks for that.
foreach(install IN ITEMS OFF ON)
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/tests/install/subdirectory
    -B ${FOLDER}/${install} -DRMA_SOURCE=${SOURCE} -DRMA_INSTALL=${install} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Release -DRMA_BUILD_QUICKLY=ON)
  set(rules "")
  if(EXISTS ${FOLDER}/${install}/rma/cmake_install.cmake)
    file(READ ${FOLDER}/${install}/rma/cmake_install.cmake rules)
  endif()
  string(FIND "${rules}" "librma" found)
  if(install AND found EQUAL -1)
    message(FATAL_ERROR "RMA_INSTALL=ON: nothing installs the library")
  endif()
  if(NOT install AND NOT found EQUAL -1)
    message(FATAL_ERROR "RMA_INSTALL=OFF: the library is installed all the same")
  endif()
endforeach()
if(BUILD)
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/OFF --target rma_part)
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${FOLDER}/OFF/rma_part)
endif()
