// SPDX-License-Identifier: Apache-2.0
// A request is one operation's end: it can be moved, not copied.
// expected-error: deleted
#include <utility>

#include "rma/request.hpp"

rma::Request fine(rma::Request& request) { return std::move(request); }

#ifdef RMA_COMPILE_FAIL
rma::Request refused(rma::Request& request) { return request; }
#endif
