// SPDX-License-Identifier: Apache-2.0
/// \file
/// Global operations among the processes of a team.
#pragma once

#include "armci/state.hpp"

namespace rma::armci {

/// x[i] of all combined, for everybody; in a scope of one process nothing happens.
void reduce(const char* call, Team team, int scope, void* x, int n, const char* op, int type);
/// The record of one of those that contribute, for everybody.
void select(const char* call, Team team, int scope, void* x, int bytes, const char* op, int type, bool contribute);
void broadcast(const char* call, Team team, int scope, void* buffer, int bytes, int root);
/// Ends the job if it is none; true for that of one process.
bool is_alone_in(const char* call, int scope);

}  // namespace rma::armci
