// SPDX-License-Identifier: Apache-2.0
// A range must have the window's element type: nothing is converted on the way.
// expected-error: no matching (member )?function
#include <span>

#include "rma/window.hpp"

void fine(rma::Window<double>& win, std::span<const double> from) { win.put(from, 0, 0); }

#ifdef RMA_COMPILE_FAIL
void refused(rma::Window<double>& win, std::span<const int> from) { win.put(from, 0, 0); }
#endif
