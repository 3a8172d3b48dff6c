# SPDX-License-Identifier: Apache-2.0
# rma_warnings: link it PRIVATE to get the project's warnings.
add_library(rma_warnings INTERFACE)
target_compile_options(rma_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${RMA_WARNINGS_AS_ERRORS}>:-Werror>)
if(RMA_BUILD_QUICKLY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ forgets which headers are the system's once they are precompiled, and warns of what it inlines from them.
  target_compile_options(rma_warnings INTERFACE
    -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()
