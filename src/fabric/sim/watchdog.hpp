// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks in real time whether a simulated rank lets the others run: ranks are fibers of one thread, so that an endless
/// loop without a call of the library blocks the whole job and its virtual time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace rma::sim {

class watchdog {
 public:
  /// Calls `report` with a line, on a thread of its own, when one rank has run for `limit` of real time, again after
  /// twice that time, and so on. Throws Error(out_of_memory) if no thread can be started.
  watchdog(std::chrono::milliseconds limit, std::function<void(const std::string&)> report);
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog();

  /// Notes that this rank's fiber resumes, in this call; -1: none runs. The text is not copied.
  void note(int rank, std::string_view call) noexcept {
    rank_.store(rank, std::memory_order_relaxed);
    call_.store(call.data(), std::memory_order_relaxed);
    call_bytes_.store(call.size(), std::memory_order_relaxed);
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  void watch();
  void look();

  const std::chrono::milliseconds limit_;
  const std::function<void(const std::string&)> report_;
  std::atomic<int> rank_ = -1;
  std::atomic<const char*> call_ = nullptr;
  std::atomic<std::size_t> call_bytes_ = 0;
  std::atomic<std::uint64_t> turns_ = 0;
  std::uint64_t turns_seen_ = 0;  ///< these three are the thread's
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds due_;
  std::mutex lock_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace rma::sim
