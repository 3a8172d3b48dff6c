// SPDX-License-Identifier: Apache-2.0
/// \file
/// The one line that an Error of a window call carries: call, window, rank, value, remedy.
#include <fmt/format.h>

#include "core/names.hpp"
#include "rma/detail/window_ops.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/window_core.hpp"

namespace rma::detail {
namespace {

std::string_view describe(access_epoch e, bool locked) noexcept {
  if (locked) return "a lock epoch is open";
  switch (e) {
    case access_epoch::none: return "no epoch is open";
    case access_epoch::fence: return "a fence epoch is open";
    case access_epoch::start: return "a start/complete epoch is open";
    case access_epoch::lock_all: return "a lock_all epoch is open";
    case access_epoch::neighbours: return "an epoch among neighbours is open";
    case access_epoch::opening: return "another thread is in start()";
    case access_epoch::closing: return "an epoch is being closed by a request that has not ended";
  }
  return "?";
}

bool is_operation(call c) noexcept { return c <= call::compare_and_swap; }

std::string epoch_remedy(const window_core& w, call what, int target) {
  const std::string now = fmt::format("{}{}{}", describe(w.access, w.locks_open != w.wanted.size()),
                                      w.wanted.empty() ? "" : ", and the request of an ilock has not ended",
                                      w.exposed ? ", and this rank has posted" : "");
  switch (what) {
    case call::fence:
      return now + "; close it (unlock, complete, wait) before a fence, and complete operations before no_precede";
    case call::lock: return fmt::format("{}; unlock rank {} first, or close the other epoch", now, target);
    case call::lock_all:
    case call::start:
    case call::post: return now + "; close it first";
    case call::complete: return now + "; complete() ends an epoch begun by start()";
    case call::wait:
    case call::test: return now + "; wait() and test() end an epoch begun by post()";
    case call::free: return now + "; close every epoch before free()";
    case call::flush:
    case call::flush_all:
    case call::flush_local:
    case call::flush_local_all:
      return now + "; flush needs lock(target) or lock_all(); in other epochs fence() and complete() complete";
    default: return now + fmt::format(" towards rank {}; call fence(), start() or lock() first", target);
  }
}

std::uint64_t size_at(const window_core& w, int target) noexcept {
  if (!w.is_far(target)) return w.identity_of(target)->identity.bytes / w.unit;
  const auto far = w.far_targets.find(target);
  return far == w.far_targets.end() ? 0 : far->second->bytes / w.unit;
}

std::string remedy(const window_core& w, call what, status code, int target, std::uint64_t displacement,
                   std::uint64_t count) {
  if (what == call::wait_until || what == call::test_until) {
    if (code != status::bad_rank) target = w.team->rank;  // whose part it is, not who should write there
  }
  switch (code) {
    case status::out_of_window:
      if (w.kind == call::create_dynamic)
        return fmt::format("displacement {} is not in a range that rank {} has attached", displacement, target);
      return fmt::format("{} element(s) at displacement {} (unit {} bytes); rank {} has {}", count, displacement,
                         w.unit, target, size_at(w, target));
    case status::wrong_epoch: return epoch_remedy(w, what, target);
    case status::not_locked:
      return what == call::unlock_all
                 ? "lock_all() is not open"
                 : fmt::format("rank {} is not locked by this rank; lock() it first, and unlock once", target);
    case status::bad_rank:
      return fmt::format("rank {} is not in the team; its ranks are 0 to {}", target, w.size() - 1);
    case status::bad_size: return fmt::format("{} elements: the two sides differ, or the size overflows", count);
    case status::bad_type:
      return fmt::format("operator {} on {}: ", rma::name_of(w.refused_op), rma::name_of(w.refused_type)) +
             "logical and bitwise operators and compare_and_swap need integers, min and max an order, layouts "
             "whole elements, and mode device elements of at most 8 bytes";
    case status::misaligned:
      return fmt::format(
          "displacement {} is not a multiple of the element's size; atomic operations need natural alignment",
          displacement);
    case status::window_failed: return "an epoch of this rank was abandoned by an exception; free the window";
    case status::bad_argument:
      if (what == call::attach) return "the range is empty or overlaps one that is attached";
      if (what == call::detach) return "no attached range begins there";
      if (what == call::fence) return "fence_neighbours() needs neighbours(), once before";
      if (what == call::lock) return "a range of no bytes, or an unknown kind of lock";
      if (what == call::post && w.fences.has_neighbours) return "a window's neighbours are given once, each rank once";
      if (what == call::post || what == call::start) return "a rank is in the group twice";
      if (what == call::wait_signal || what == call::test_signal) {
        return fmt::format("signal {} is not one of the window's {} (Hints::signals)", displacement, w.hints.signals);
      }
      return fmt::format("the window has {} signals, 0 to {} (Hints::signals)", w.hints.signals, w.hints.signals - 1);
    case status::wrong_thread: return wrong_thread_remedy;
    case status::not_supported:
      return what == call::attach || what == call::detach ? "only windows made by create_dynamic have ranges"
                                                          : "this window cannot do it";
    case status::unreachable:
      return fmt::format("rank {} is on another node and no network fabric connects the two; run all ranks on one node",
                         target);
    case status::job_aborted: return "the job is being ended";
    default: return "see rma::status";
  }
}

}  // namespace

void raise(const window_view& view, call what, status code, int target, std::uint64_t displacement, std::uint64_t count,
           const std::source_location& where) {
  if (is_freed(view)) {
    if (what == call::free && code <= status::peer_failed) {
      throw Error(code,
                  fmt::format("free: {}: the window is freed, but not all that was under way came to a good end",
                              rma::name_of(code)),
                  -1, where);
    }
    const bool unlock = code == status::not_locked;
    throw Error(unlock ? code : status::window_freed,
                fmt::format("{}: {}", name_of(what),
                            unlock ? "not_locked: this epoch was unlocked already"
                                   : "window_freed: the window was freed, moved from or never made"),
                -1, where);
  }
  const window_core& w = core_of(view);
  const visit in(w);
  const std::string name =
      w.hints.name.empty() ? fmt::format("#{:x}", w.id & 0xffff) : fmt::format("'{}'", w.hints.name);
  int about = target;
  std::string why;
  if (code == status::peer_failed) {
    about = w.ctx->last_failed();
    why = fmt::format("world rank {} is dead or has left the job; go on without it, or team.shrink()", about);
  } else if (code == status::transfer_failed) {
    about = w.ctx->last_failed();
    why = about >= 0 && about == w.dropped_by.load()
              ? fmt::format("world rank {} has dropped this window; let all finish before it does, by a barrier", about)
              : fmt::format(
                    "a transfer to or from world rank {} ended with an error, though the rank lives; "
                    "what it should have written is undefined: repeat it",
                    about);
  } else {
    why = remedy(w, what, code, target, displacement, count);
  }
  const std::string towards =
      target >= 0 && (is_operation(what) || what == call::lock || what == call::unlock || what == call::flush)
          ? fmt::format(" to rank {}", target)
          : std::string();
  throw Error(code,
              fmt::format("{}{} on window {}, rank {}: {}: {}", name_of(what), towards, name, w.team->rank,
                          rma::name_of(code), why),
              about, where);
}

void lock_or_raise(window_view& window, lock_kind kind, int target, assertion promises, std::source_location where) {
  require(window, call::lock, lock_slow(window, kind, target, promises), target, 0, 0, where);
}

void unlock_or_raise(window_view& window, int target, std::source_location where) {
  require(window, call::unlock, unlock_slow(window, target), target, 0, 0, where);
}

void flush_or_raise(window_view& window, int target, std::source_location where) {
  require(window, call::flush, flush_slow(window, target), target, 0, 0, where);
}

}  // namespace rma::detail
