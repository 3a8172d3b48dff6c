// SPDX-License-Identifier: Apache-2.0
// A runtime is this rank's part of a job: neither copied nor moved.
// expected-error: deleted
#include "rma/runtime.hpp"

rma::Runtime& fine(rma::Runtime& runtime) { return runtime; }

#ifdef RMA_COMPILE_FAIL
rma::Runtime refused(rma::Runtime& runtime) { return rma::Runtime(runtime); }
#endif
