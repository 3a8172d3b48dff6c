// SPDX-License-Identifier: Apache-2.0
// `{}` says neither a value nor a range: put({}, ...) wrote a zero where nothing was meant.
// expected-error: (use of|call to) deleted (member )?function
#include <array>
#include <complex>
#include <span>

#include "rma/window.hpp"

struct pair {
  int a, b;
};

void fine(rma::Window<double>& win, rma::Window<pair>& pairs, rma::Window<std::complex<double>>& complex) {
  const std::array<double, 2> range{};
  win.put(double{}, 0, 0);
  win.put({1.0}, 0, 0);
  win.put(std::span<const double>(), 0, 0);
  win.put(range, 0, 0);
  win.put({}, rma::Layout(), 0, 0, rma::Layout());
  win.accumulate(0.0, 0, 0, rma::sum);
  win.put_signal({}, 0, 0, 0);
  pairs.put({1, 2}, 0, 0);
  pairs.put(pair{}, 0, 0);
  complex.put({1.0, 2.0}, 0, 0);
}

#ifdef RMA_COMPILE_FAIL
void refused(rma::Window<pair>& win) { win.put({}, 0, 0); }
#endif
