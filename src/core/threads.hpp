// SPDX-License-Identifier: Apache-2.0
/// \file
/// Threads of the library's own.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

namespace rma::detail {

/// Runs `run` on a thread on which no signal is delivered: signals are for the threads of the program.
/// Throws Error(out_of_memory) if there is no thread to be had: "cannot start `what`: ...".
[[nodiscard]] std::thread start_thread(std::string_view what, std::function<void()> run);

}  // namespace rma::detail
