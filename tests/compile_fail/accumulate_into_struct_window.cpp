// SPDX-License-Identifier: Apache-2.0
// A window of structs has put and get, but no accumulate.
// expected-error: accumulate
#include "rma/window.hpp"

struct particle {
  double x;
  int id;
};

void fine(rma::Window<particle>& win) { win.put(particle{1.0, 2}, 0, 0); }

#ifdef RMA_COMPILE_FAIL
void refused(rma::Window<particle>& win) { win.accumulate(particle{1.0, 2}, 0, 0, rma::sum); }
#endif
