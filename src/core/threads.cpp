// SPDX-License-Identifier: Apache-2.0
#include "core/threads.hpp"

#include <fmt/format.h>

#include <cstring>
#include <system_error>
#include <utility>

#include "core/signals_blocked.hpp"
#include "rma/error.hpp"

namespace rma::detail {

std::thread start_thread(std::string_view what, std::function<void()> run) {
  const signals_blocked inherited;
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    throw Error(status::out_of_memory,
                fmt::format("cannot start {}: {}; threads are limited by ulimit -u and a control group's pids.max, "
                            "their memory by ulimit -v",
                            what, std::strerror(error.code().value())));
  }
}

}  // namespace rma::detail
