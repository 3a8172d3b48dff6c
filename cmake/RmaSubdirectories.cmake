# SPDX-License-Identifier: Apache-2.0

# rma_add_subdirectories(): adds every folder below the current one that has a CMakeLists.txt. Such a folder
# owns what lies below it; where there is none, the search goes deeper (fabric/shm, fabric/verbs, ...).
function(rma_add_subdirectories)
  _rma_walk_subdirectories(${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

function(_rma_walk_subdirectories folder)
  file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true ${folder}/*)
  foreach(entry IN LISTS entries)
    if(EXISTS ${entry}/CMakeLists.txt)
      add_subdirectory(${entry})
    elseif(IS_DIRECTORY ${entry})
      # CMake cannot watch for a file that is not there yet; a glob can.
      file(GLOB unused CONFIGURE_DEPENDS ${entry}/CMakeLists.txt)
      _rma_walk_subdirectories(${entry})
    endif()
  endforeach()
endfunction()
