// SPDX-License-Identifier: Apache-2.0
// Accumulate knows arithmetic element types only: a struct has no run-time element name.
// expected-error: accumulable
#include "rma/operation.hpp"

struct pair_of_ints {
  int first;
  int second;
};

static_assert(rma::element_of<int> == rma::element::i32);
static_assert(!rma::accumulable<pair_of_ints>);

#ifdef RMA_COMPILE_FAIL
static_assert(rma::element_of<pair_of_ints> == rma::element::i32);
#endif
