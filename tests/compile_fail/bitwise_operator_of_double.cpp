// SPDX-License-Identifier: Apache-2.0
// Bitwise and logical operators need integers; known when the program is compiled.
// expected-error: not defined for the window
#include "rma/window.hpp"

void fine(rma::Window<unsigned>& win) { win.accumulate(1U, 0, 0, rma::bxor); }

#ifdef RMA_COMPILE_FAIL
void refused(rma::Window<double>& win) { win.accumulate(1.0, 0, 0, rma::bxor); }
#endif
