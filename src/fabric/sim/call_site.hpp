// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds where a program called the library, from the stack of a waiting rank. It costs nothing before it is used.
#pragma once

#include <string>
#include <vector>

namespace rma::sim {

/// Return addresses, the innermost first.
using call_stack = std::vector<void*>;

/// The stack of the caller. The first call in a process may need much stack.
call_stack stack_here();

/// Returns for each stack the innermost call site outside the library: "app.cpp:17 (work(int))" where the program has
/// debug information (and addr2line is installed), else "work(int)+0x2a in app.so" or "app.so+0x1234"; "" if there is
/// none.
std::vector<std::string> call_sites(const std::vector<call_stack>& of);

}  // namespace rma::sim
