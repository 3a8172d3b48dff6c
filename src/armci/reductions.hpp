// SPDX-License-Identifier: Apache-2.0
/// \file
/// Global operations among the processes of a team.
#pragma once

#include "armci/state.hpp"

namespace rma::armci {

/// Combines x[i] of all processes, for all of them; does nothing in a scope of one process.
void reduce(const char* call, Team team, int scope, void* x, int n, const char* op, int type);
/// Gives all processes the record of one of those that contribute.
void select(const char* call, Team team, int scope, void* x, int bytes, const char* op, int type, bool contribute);
void broadcast(const char* call, Team team, int scope, void* buffer, int bytes, int root);
/// Ends the job if the scope is invalid; returns true for the scope of one process.
bool is_alone_in(const char* call, int scope);

}  // namespace rma::armci
