# SPDX-License-Identifier: Apache-2.0
# Included by CMakeLists.txt of this folder.
rma_add_test(NAME kernels_test SOURCES kernels_test.cpp LABELS unit)
