// SPDX-License-Identifier: Apache-2.0
/// \file
/// Threads of the library.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

namespace rma::detail {

/// Runs `run` on a thread that blocks all signals: they are delivered to threads of the program.
/// Throws Error(out_of_memory) if no thread can be started: "cannot start `what`: ...".
[[nodiscard]] std::thread start_thread(std::string_view what, std::function<void()> run);

}  // namespace rma::detail
