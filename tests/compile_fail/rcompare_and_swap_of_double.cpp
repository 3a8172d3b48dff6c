// SPDX-License-Identifier: Apache-2.0
// rcompare_and_swap compares bits: on floating point numbers that would not be what == says.
// expected-error: rcompare_and_swap needs an integer window
#include "rma/window.hpp"

void fine(rma::Window<long>& win, long& old) { (void)win.rcompare_and_swap(1, 2, old, 0, 0); }

#ifdef RMA_COMPILE_FAIL
void refused(rma::Window<double>& win, double& old) { (void)win.rcompare_and_swap(1.0, 2.0, old, 0, 0); }
#endif
