// SPDX-License-Identifier: Apache-2.0
/// \file
/// Settings: one table of all RMA_* variables, with their values and purposes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock_choice.hpp"
#include "rma/config.hpp"
#include "rma/runtime.hpp"

namespace rma::detail {

/// Every setting by number; the table in settings.cpp has the same order.
enum class knob : std::uint8_t {
  boot,
  rank,
  size,
  key,
  node,
  boot_timeout_ms,
  boot_interface,
  peer_timeout_ms,
  local_ranks,
  core_group,
  job,
  process_sets,
  segment_bytes,
  huge_pages,
  fabric,
  device,
  registration_cache_bytes,
  threads,
  progress_thread,
  spin_us,
  stall_report_s,
  log,
  counters,
  intranode,
  promote,
  user_memory,
  layout,
  layout_cache,
  schedule,
  aggregate,
  waiting_operations,
  tuning,
  accumulate,
  fence,
  barrier,
  eager,
  eager_bytes,
  eager_memory,
  ring_peers,
  ring_slots,
  ring_set,
  ring_order,
  send_copy_bytes,
  rendezvous,
  polled_end,
  coll_barrier,
  coll_broadcast,
  coll_reduce,
  coll_allreduce,
  coll_reduce_scatter,
  coll_scan,
  coll_exscan,
  coll_gather,
  coll_scatter,
  coll_allgather,
  coll_alltoall,
  coll_reproducible,
  nbc_progress,
  lock,
  lock_bypasses,
  lock_recovery,
  check,
  trace,
  trace_bytes,
  trace_calls,
  mpi_explain,
  count_
};

/// The values in force, which are checked when they are read: an invalid value is an Error at once.
class settings {
 public:
  /// Reads the environment (if wanted) and the config. Throws Error(bad_setting).
  explicit settings(const Config& config);

  [[nodiscard]] std::string text(knob k) const { return std::string(view(static_cast<std::size_t>(k))); }
  [[nodiscard]] bool is(knob k, std::string_view value) const noexcept {
    return view(static_cast<std::size_t>(k)) == value;
  }
  [[nodiscard]] bool on(knob k) const noexcept { return is(k, "1") || is(k, "on"); }
  [[nodiscard]] std::uint64_t number(knob k) const noexcept { return numbers_[static_cast<std::size_t>(k)]; }
  /// True if it has not been set.
  [[nodiscard]] bool is_initial(knob k) const noexcept {
    return sources_[static_cast<std::size_t>(k)] == source::initial;
  }
  /// The parsed value of RMA_LOCK.
  [[nodiscard]] LockChoice lock() const noexcept;
  [[nodiscard]] std::vector<Setting> list() const;
  /// Config::from_rank_0 and one_machine.
  [[nodiscard]] const std::function<std::string(const std::string&)>& from_rank_0() const noexcept {
    return from_rank_0_;
  }
  [[nodiscard]] bool one_machine() const noexcept { return one_machine_; }

 private:
  /// A setting whose value is not its initial one.
  struct changed {
    std::size_t index;
    std::string value;
  };
  [[nodiscard]] std::string_view view(std::size_t index) const noexcept;
  enum class source : std::uint8_t { initial, environment, config };
  void take_launcher();
  void set(std::size_t index, std::string value, source from);
  std::array<std::uint64_t, static_cast<std::size_t>(knob::count_)> numbers_{};
  std::vector<changed> changed_;  ///< a short list, since each of thousands of simulated ranks has its own
  std::array<source, static_cast<std::size_t>(knob::count_)> sources_{};
  std::function<std::string(const std::string&)> from_rank_0_;
  bool one_machine_ = false;
};

}  // namespace rma::detail
