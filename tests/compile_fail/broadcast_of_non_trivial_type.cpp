// SPDX-License-Identifier: Apache-2.0
// A broadcast's elements travel as bytes.
// expected-error: (trivially_copyable|static assertion|static_assert)
#include <span>
#include <string>

#include "rma/team.hpp"

void fine(rma::Team& team, std::span<int> data) { team.broadcast(data, 0); }

#ifdef RMA_COMPILE_FAIL
void refused(rma::Team& team, std::span<std::string> data) { team.broadcast(data, 0); }
#endif
