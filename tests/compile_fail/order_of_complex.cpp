// SPDX-License-Identifier: Apache-2.0
// Complex numbers have no order: no min, no max.
// expected-error: not defined for the window
#include <complex>

#include "rma/window.hpp"

using number = std::complex<double>;

void fine(rma::Window<number>& win) { (void)win.fetch_and_op(number(1, 2), 0, 0, rma::sum); }

#ifdef RMA_COMPILE_FAIL
void refused(rma::Window<number>& win) { (void)win.fetch_and_op(number(1, 2), 0, 0, rma::max); }
#endif
