// SPDX-License-Identifier: Apache-2.0
// A window is one thing: it can be moved, not copied.
// expected-error: deleted
#include <utility>

#include "rma/window.hpp"

rma::Window<int> fine(rma::Window<int>& win) { return std::move(win); }

#ifdef RMA_COMPILE_FAIL
rma::Window<int> refused(rma::Window<int>& win) { return win; }
#endif
