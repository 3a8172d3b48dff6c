# SPDX-License-Identifier: Apache-2.0
# rma_warnings: link it PRIVATE to get the project's warnings.
add_library(rma_warnings INTERFACE)
target_compile_options(rma_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${RMA_WARNINGS_AS_ERRORS}>:-Werror>)
