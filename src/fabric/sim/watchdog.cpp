// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/threads.hpp"

namespace rma::sim {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds looks_most{1000};
constexpr int looks_per_limit = 4;

}  // namespace

watchdog::watchdog(milliseconds limit, std::function<void(const std::string&)> report)
    : limit_(limit),
      report_(std::move(report)),
      due_(limit),
      thread_(detail::start_thread("the simulator's watchdog", [this] { watch(); })) {}

watchdog::~watchdog() {
  {
    const std::lock_guard guard(lock_);
    ending_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

void watchdog::watch() {
  const milliseconds pause = std::clamp(limit_ / looks_per_limit, milliseconds(1), looks_most);
  std::unique_lock guard(lock_);
  while (!ends_.wait_for(guard, pause, [this] { return ending_; })) look();
}

void watchdog::look() {
  const auto now = std::chrono::steady_clock::now();
  const std::uint64_t turns = turns_.load(std::memory_order_acquire);
  const int rank = rank_.load(std::memory_order_relaxed);
  const std::string_view call(call_.load(std::memory_order_relaxed), call_bytes_.load(std::memory_order_relaxed));
  const bool same = turns == turns_seen_ && turns == turns_.load(std::memory_order_acquire);
  if (!same || rank < 0) {
    turns_seen_ = turns;
    since_ = now;
    due_ = limit_;
    return;
  }
  if (now - since_ < due_) return;
  due_ *= 2;
  const double passed_s = std::chrono::duration<double>(now - since_).count();
  report_(fmt::format(
      "rank {} has run for {:.1f} s of real time {}, and no other rank meanwhile: it computes, or loops "
      "without a call of the library; gdb -p {} shows where",
      rank, passed_s, call.empty() ? std::string("outside the library") : fmt::format("in {}", call), ::getpid()));
}

}  // namespace rma::sim
