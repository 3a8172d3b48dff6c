// SPDX-License-Identifier: Apache-2.0
// See kernels_bulk.inc; the compiler flags of this file are in kernels.cmake.
#define RMA_KERNEL_ISA avx2
#include "xfer/kernels_bulk.inc"
