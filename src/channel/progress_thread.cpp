// SPDX-License-Identifier: Apache-2.0
/// \file
/// The progress thread of a rank, and the report of a rank that should have had one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "channel/context.hpp"
#include "core/assert.hpp"
#include "core/futex.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t nap_first_ns = 250'000;
constexpr std::int64_t nap_most_ns = 1'000'000;
constexpr std::int64_t rest_ns = 100'000'000;  // it is woken earlier when the program leaves the library

/// Values of aside_.
constexpr std::uint32_t serving = 0, naps = 1, rests = 2;

/// True if ranks of other nodes need this rank's processor for puts and gets, or for protocols that the settings choose
/// for all windows.
bool needs_processor(const settings& s, const fabric::network* wide) noexcept {
  return !wide->caps().one_sided || s.is(knob::accumulate, "handler") || s.lock().protocol == lock_protocol::two_sided;
}

}  // namespace

// A simulated progress thread costs its program nothing, so that it need not stand aside.
void context::serve_beside(bool for_window) {
  if (serves_beside_) return;
  const bool always = settings_.on(knob::progress_thread) || settings_.is(knob::nbc_progress, "thread");
  const bool may = settings_.is(knob::progress_thread, "auto");
  const bool yields = settings_.is(knob::progress_thread, "yielding") ||
                      (may && has_far_ranks() && (for_window || needs_processor(settings_, wide_)));
  if (!always && !yields) return;
  RMA_ASSERT(progress_thread_ == nullptr && stopping_.load() == 0);
  shared_ = true;
  yields_to_program_ = !always && !around_.is_simulated();
  serves_beside_ = true;
  progress_thread_ = around_.start([this] { serve(); });
}

bool context::has_far_ranks() const noexcept {
  if (wide_ == nullptr) return false;
  for (int rank = 0; rank < boot_.size(); ++rank) {
    if (!near_ || !node_.as_facts().reaches(rank)) return true;
  }
  return false;
}

void context::stop_progress_thread() noexcept {
  if (progress_thread_ == nullptr) return;
  stopping_.store(1);
  aside_.store(serving);
  futex_wake_all(aside_);
  full_fence();
  around_.ring(rank());
  progress_thread_->join();
  progress_thread_ = nullptr;
}

void context::serve() noexcept {
  std::uint32_t rounds_seen = 0;
  const auto program_is_inside = [&]() noexcept {
    return program_waits_.load(std::memory_order_relaxed) != 0 ||
           program_rounds_.load(std::memory_order_relaxed) != rounds_seen;
  };
  const auto pauses = [&]() noexcept { return stopping_.load() != 0 || (yields_to_program_ && program_is_inside()); };
  while (stopping_.load() == 0) {
    rounds_seen = program_rounds_.load(std::memory_order_relaxed);
    (void)wait_slow({.until = pauses, .woken_by = wakes::service});
    if (gone_.job_is_aborted()) return;
    if (yields_to_program_) stand_aside();
  }
}

// A thread of the program that waits or communicates handles messages itself, sooner than a thread that has to be woken
// for each. The progress thread checks for this at intervals, so that calls need not wake it at their end: it serves
// when no call was made since its last check. While a wait of the program sleeps, the thread sleeps until that wait
// ends.
void context::stand_aside() noexcept {
  RMA_ASSERT(serves_beside_ && yields_to_program_);
  std::uint32_t rounds_seen = 0;
  const auto program_was_inside = [&]() noexcept {
    return program_waits_.load() != 0 || program_rounds_.load(std::memory_order_relaxed) != rounds_seen;
  };
  std::int64_t nap_ns = nap_first_ns;
  do {
    rounds_seen = program_rounds_.load(std::memory_order_relaxed);
    const bool long_ones = asleep_.load() != 0;
    aside_.store(long_ones ? rests : naps);
    full_fence();
    if (stopping_.load() != 0) break;
    futex_wait(aside_, long_ones ? rests : naps, long_ones && program_waits_.load() != 0 ? rest_ns : nap_ns);
    if (stopping_.load() != 0) break;
    nap_ns = std::min(2 * nap_ns, nap_most_ns);
  } while (program_was_inside());
  aside_.store(serving);
}

void context::program_leaves() noexcept {
  RMA_ASSERT(program_waits_.load() != 0);
  program_waits_.fetch_sub(1);
  if (aside_.load() != rests) return;
  aside_.store(serving);
  futex_wake_all(aside_);
}

void context::count_target_wait(std::int64_t begin_ns) noexcept {
  const std::lock_guard guard(lock_);
  count(counter::target_wait_ns, static_cast<std::uint64_t>(around_.now_ns() - begin_ns));
}

// It is about a target that was silent for all that time: a long transfer is not reported. Said during the wait, which
// may never end.
void context::report_silence(int peer_rank, bool of_lock, std::int64_t silent_ns) noexcept {
  if (serves_beside_ || around_.is_simulated() || settings_.is(knob::log, "error") || gone(peer_rank) ||
      has_warned_.exchange(true))
    return;
  const std::string cause =
      of_lock ? fmt::format("the lock manager of rank {} has not granted the lock", peer_rank)
              : fmt::format("rank {} makes no call of the library, and has no progress thread", peer_rank);
  const std::string text = fmt::format(
      "rma: rank {} has waited {} ms in {}: {}; RMA_PROGRESS_THREAD=1 lets ranks serve others while they compute "
      "(reported once)\n",
      rank(), silent_ns / 1'000'000, where(), cause);
  (void)std::fputs(text.c_str(), stderr);
}

}  // namespace rma::detail
