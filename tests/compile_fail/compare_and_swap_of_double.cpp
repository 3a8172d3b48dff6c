// SPDX-License-Identifier: Apache-2.0
// compare_and_swap compares bits: on floating point numbers that would not be what == says.
// expected-error: compare_and_swap needs an integer window
#include "rma/window.hpp"

void fine(rma::Window<long>& win) { (void)win.compare_and_swap(1, 2, 0, 0); }

#ifdef RMA_COMPILE_FAIL
void refused(rma::Window<double>& win) { (void)win.compare_and_swap(1.0, 2.0, 0, 0); }
#endif
